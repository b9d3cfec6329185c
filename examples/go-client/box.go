// The authenticated encryption of CURVE: X25519, XSalsa20 and Poly1305, as https://nacl.cr.yp.to/box.html has them.
//
// Go's standard library has X25519 alone. What is here is short and checked against the broker with every message; it
// is not written against timing attacks. A program that others depend on takes golang.org/x/crypto/nacl/box instead.

package main

import (
	"crypto/ecdh"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"math/big"
	"math/bits"
)

const tagBytes = 16

var errBox = errors.New("a message was not encrypted with the expected key")

// sharedKey is what two key pairs have in common: the own secret key and the peer's public key.
func sharedKey(secret *ecdh.PrivateKey, public []byte) ([]byte, error) {
	peer, err := ecdh.X25519().NewPublicKey(public)
	if err != nil {
		return nil, err
	}
	common, err := secret.ECDH(peer)
	if err != nil {
		return nil, err
	}
	return hsalsa(common, make([]byte, 16)), nil
}

// seal encrypts a message; the nonce has 24 bytes, and must not be used again with this key.
func seal(key, nonce, message []byte) []byte {
	stream := salsaStream(hsalsa(key, nonce[:16]), nonce[16:], 32+len(message))
	sealed := make([]byte, tagBytes+len(message))
	subtle.XORBytes(sealed[tagBytes:], message, stream[32:])
	copy(sealed, poly1305(stream[:32], sealed[tagBytes:]))
	return sealed
}

// open decrypts what `seal` made.
func open(key, nonce, sealed []byte) ([]byte, error) {
	if len(sealed) < tagBytes {
		return nil, errBox
	}
	stream := salsaStream(hsalsa(key, nonce[:16]), nonce[16:], 32+len(sealed)-tagBytes)
	if subtle.ConstantTimeCompare(sealed[:tagBytes], poly1305(stream[:32], sealed[tagBytes:])) != 1 {
		return nil, errBox
	}
	message := make([]byte, len(sealed)-tagBytes)
	subtle.XORBytes(message, sealed[tagBytes:], stream[32:])
	return message, nil
}

// salsaBlock is the matrix of Salsa20 for a key of 32 bytes and 16 bytes of input, and the same after 20 rounds.
func salsaBlock(key, input []byte) (before, after [16]uint32) {
	words := binary.LittleEndian
	for i, name := range []string{"expa", "nd 3", "2-by", "te k"} {
		before[5*i] = words.Uint32([]byte(name))
	}
	for i := range 4 {
		before[1+i], before[11+i] = words.Uint32(key[4*i:]), words.Uint32(key[16+4*i:])
		before[6+i] = words.Uint32(input[4*i:])
	}
	x := before
	turn := func(a, b, c, d int) {
		x[b] ^= bits.RotateLeft32(x[a]+x[d], 7)
		x[c] ^= bits.RotateLeft32(x[b]+x[a], 9)
		x[d] ^= bits.RotateLeft32(x[c]+x[b], 13)
		x[a] ^= bits.RotateLeft32(x[d]+x[c], 18)
	}
	for range 10 {
		turn(0, 4, 8, 12)
		turn(5, 9, 13, 1)
		turn(10, 14, 2, 6)
		turn(15, 3, 7, 11)
		turn(0, 1, 2, 3)
		turn(5, 6, 7, 4)
		turn(10, 11, 8, 9)
		turn(15, 12, 13, 14)
	}
	return before, x
}

func hsalsa(key, input []byte) []byte {
	_, after := salsaBlock(key, input)
	out := []byte{}
	for _, i := range []int{0, 5, 10, 15, 6, 7, 8, 9} {
		out = binary.LittleEndian.AppendUint32(out, after[i])
	}
	return out
}

func salsaStream(key, nonce []byte, length int) []byte {
	stream := make([]byte, 0, length+64)
	input := append(append([]byte{}, nonce...), make([]byte, 8)...)
	for count := uint64(0); len(stream) < length; count++ {
		binary.LittleEndian.PutUint64(input[8:], count)
		before, after := salsaBlock(key, input)
		for i := range after {
			stream = binary.LittleEndian.AppendUint32(stream, before[i]+after[i])
		}
	}
	return stream[:length]
}

// poly1305 is the tag of a message under a key that is used once.
func poly1305(key, message []byte) []byte {
	prime := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 130), big.NewInt(5))
	r, sum := littleEndian(key[:16]), new(big.Int)
	clamp, _ := new(big.Int).SetString("0ffffffc0ffffffc0ffffffc0fffffff", 16)
	r.And(r, clamp)
	for len(message) > 0 {
		size := min(16, len(message))
		block := littleEndian(append(append([]byte{}, message[:size]...), 1))
		sum.Mod(sum.Mul(sum.Add(sum, block), r), prime)
		message = message[size:]
	}
	tag := make([]byte, 17)
	sum.Add(sum, littleEndian(key[16:32])).And(sum, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 128), big.NewInt(1)))
	sum.FillBytes(tag)
	return reversed(tag)[:16]
}

func littleEndian(bytes []byte) *big.Int { return new(big.Int).SetBytes(reversed(bytes)) }

func reversed(bytes []byte) []byte {
	out := make([]byte, len(bytes))
	for i, one := range bytes {
		out[len(bytes)-1-i] = one
	}
	return out
}
