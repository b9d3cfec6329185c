// A connection file, as `plimsoll client-config NAME` prints it: the address and key of a head, and the own secret key.

package main

import (
	"crypto/ecdh"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sort"
	"strings"
)

const z85Digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"

// access is how the client reaches its brokers; without a secret key in plain TCP.
type access struct {
	head, headKey string
	secret        *ecdh.PrivateKey
}

func readAccess(path string) (access, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return access{}, err
	}
	var file struct {
		Security string `json:"security"`
		Secret   string `json:"secret.key"`
		Heads    map[string]struct{ Endpoint, PublicKey string }
	}
	var raw map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(text, &file), json.Unmarshal(text, &raw)); err != nil {
		return access{}, fmt.Errorf("%s is not a connection file: %w", path, err)
	}
	if err := json.Unmarshal(raw["heads.json"], &file.Heads); err != nil || len(file.Heads) == 0 {
		return access{}, fmt.Errorf("%s names no head in heads.json", path)
	}
	names := []string{}
	for name := range file.Heads {
		names = append(names, name)
	}
	sort.Strings(names)
	head := file.Heads[names[0]]
	if file.Security == "plain" && file.Secret == "" {
		return access{head: head.Endpoint}, nil
	}
	key, err := z85(strings.TrimSpace(file.Secret))
	if err != nil {
		return access{}, fmt.Errorf("%s has no secret.key that can be used: %w", path, err)
	}
	secret, err := ecdh.X25519().NewPrivateKey(key)
	return access{head.Endpoint, head.PublicKey, secret}, err
}

// z85 decodes a key of 40 characters, https://rfc.zeromq.org/spec/32/.
func z85(text string) ([]byte, error) {
	if len(text) != 40 {
		return nil, fmt.Errorf("a key has 40 characters, not %d", len(text))
	}
	key := []byte{}
	for at := 0; at < len(text); at += 5 {
		value := uint64(0)
		for _, char := range text[at : at+5] {
			digit := strings.IndexRune(z85Digits, char)
			if digit < 0 {
				return nil, errors.New("a key is written in the characters of Z85")
			}
			value = value*85 + uint64(digit)
		}
		key = binary.BigEndian.AppendUint32(key, uint32(value))
	}
	return key, nil
}
