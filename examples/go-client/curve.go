// The mechanism CURVE of ZMTP, https://rfc.zeromq.org/spec/26/, as the side that dials has it.

package main

import (
	"bufio"
	"bytes"
	"crypto/ecdh"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"net"
)

const keyBytes = 32

// channel encrypts the messages of one connection. One goroutine seals and one opens.
type channel struct {
	key          []byte
	sent, opened uint64
}

// curveHandshake makes a channel. `public` is the broker's key: another broker cannot read what is said here.
func curveHandshake(conn net.Conn, reader *bufio.Reader, own *ecdh.PrivateKey, public []byte) (*channel, error) {
	session, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	toServer, err := sharedKey(session, public)
	if err != nil {
		return nil, err
	}
	mine := session.PublicKey().Bytes()
	hello := append([]byte("\x05HELLO\x01\x00"), make([]byte, 72)...)
	hello = append(append(hello, mine...), count(1)...)
	hello = append(hello, seal(toServer, nonce("CurveZMQHELLO---", count(1)), make([]byte, 64))...)
	if err := sendCommand(conn, hello); err != nil {
		return nil, err
	}
	welcome, err := receiveCommand(reader, "\x07WELCOME", 16+144)
	if err != nil {
		return nil, err
	}
	secret, err := open(toServer, nonce("WELCOME-", welcome[:16]), welcome[16:])
	if err != nil {
		return nil, err
	}
	theirs, cookie := secret[:keyBytes], secret[keyBytes:]
	key, err := sharedKey(session, theirs)
	if err != nil {
		return nil, err
	}
	initiate, err := initiateCommand(own, mine, public, theirs, cookie, key)
	if err != nil {
		return nil, err
	}
	if err := sendCommand(conn, initiate); err != nil {
		return nil, err
	}
	ready, err := receiveCommand(reader, "\x05READY", 8+tagBytes)
	if err != nil {
		return nil, err
	}
	if _, err := open(key, nonce("CurveZMQREADY---", ready[:8]), ready[8:]); err != nil {
		return nil, err
	}
	return &channel{key: key, sent: 2, opened: binary.BigEndian.Uint64(ready)}, nil
}

// initiateCommand proves that the key of this connection is that of the own key pair.
func initiateCommand(own *ecdh.PrivateKey, mine, public, theirs, cookie, key []byte) ([]byte, error) {
	vouchKey, err := sharedKey(own, theirs)
	if err != nil {
		return nil, err
	}
	long := make([]byte, 16)
	rand.Read(long)
	vouch := seal(vouchKey, nonce("VOUCH---", long), append(append([]byte{}, mine...), public...))
	inside := append(append([]byte{}, own.PublicKey().Bytes()...), long...)
	inside = append(append(inside, vouch...), metadata...)
	command := append(append([]byte("\x08INITIATE"), cookie...), count(2)...)
	return append(command, seal(key, nonce("CurveZMQINITIATE", count(2)), inside)...), nil
}

// seal is one message part, with its flags inside.
func (c *channel) seal(flags byte, body []byte) []byte {
	c.sent++
	short := count(c.sent)
	inside := append([]byte{flags}, body...)
	return append(append([]byte("\x07MESSAGE"), short...), seal(c.key, nonce("CurveZMQMESSAGEC", short), inside)...)
}

// open is what a broker's message part has inside: flags and body. Numbers only grow, so that none is taken twice.
func (c *channel) open(part []byte) (byte, []byte, error) {
	const head = len("\x07MESSAGE")
	if len(part) < head+8+tagBytes+1 || !bytes.HasPrefix(part, []byte("\x07MESSAGE")) {
		return 0, nil, errBox
	}
	short := part[head : head+8]
	number := binary.BigEndian.Uint64(short)
	inside, err := open(c.key, nonce("CurveZMQMESSAGES", short), part[head+8:])
	if err != nil || number <= c.opened {
		return 0, nil, errBox
	}
	c.opened = number
	return inside[0], inside[1:], nil
}

func sendCommand(conn net.Conn, body []byte) error {
	writer := bufio.NewWriter(conn)
	writePart(writer, flagCommand, body)
	return writer.Flush()
}

func receiveCommand(reader *bufio.Reader, name string, atLeast int) ([]byte, error) {
	flags, body, err := readPart(reader)
	if err != nil {
		return nil, err
	}
	if flags&flagCommand == 0 || !bytes.HasPrefix(body, []byte(name)) || len(body) < len(name)+atLeast {
		return nil, errors.New("the broker refuses this key")
	}
	return body[len(name):], nil
}

func nonce(prefix string, rest []byte) []byte { return append([]byte(prefix), rest...) }

func count(number uint64) []byte { return binary.BigEndian.AppendUint64(nil, number) }
