// MessagePack, as far as docs/protocol.md, 2 needs it.

package main

import (
	"encoding/binary"
	"errors"
	"math"
)

var errMsgpack = errors.New("these bytes are not MessagePack as it is used here")

// pack appends one value: nil, bool, int, int64, uint32, float64, string, []byte, []any or map[string]any.
func pack(to []byte, value any) []byte {
	switch v := value.(type) {
	case nil:
		return append(to, 0xc0)
	case bool:
		if v {
			return append(to, 0xc3)
		}
		return append(to, 0xc2)
	case int:
		return packInt(to, int64(v))
	case int64:
		return packInt(to, v)
	case uint32:
		return packInt(to, int64(v))
	case float64:
		return binary.BigEndian.AppendUint64(append(to, 0xcb), math.Float64bits(v))
	case string:
		return append(packSize(to, len(v), 0xa0, 32, 0xd9, 0xda, 0xdb), v...)
	case []byte:
		return append(packSize(to, len(v), 0, 0, 0xc4, 0xc5, 0xc6), v...)
	case []any:
		to = packSize(to, len(v), 0x90, 16, 0, 0xdc, 0xdd)
		for _, one := range v {
			to = pack(to, one)
		}
		return to
	case map[string]any:
		to = packSize(to, len(v), 0x80, 16, 0, 0xde, 0xdf)
		for key, one := range v {
			to = pack(pack(to, key), one)
		}
		return to
	}
	panic("a value of this type is never sent")
}

func packInt(to []byte, v int64) []byte {
	switch {
	case v >= 0 && v < 128, v < 0 && v >= -32:
		return append(to, byte(v))
	case v >= 0 && v <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(to, 0xce), uint32(v))
	case v >= 0:
		return binary.BigEndian.AppendUint64(append(to, 0xcf), uint64(v))
	}
	return binary.BigEndian.AppendUint64(append(to, 0xd3), uint64(v))
}

// packSize appends the header of a string, binary, array or map. A zero code is one that this type does not have.
func packSize(to []byte, n int, fix byte, below int, one, two, four byte) []byte {
	switch {
	case n < below:
		return append(to, fix|byte(n))
	case n < 256 && one != 0:
		return append(to, one, byte(n))
	case n < 65536:
		return binary.BigEndian.AppendUint16(append(to, two), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(to, four), uint32(n))
}

// unpacker reads values; integers become int64, strings string, binaries []byte, arrays []any, maps map[string]any.
type unpacker struct {
	data []byte
	err  error
}

func unpack(data []byte) (any, error) {
	u := &unpacker{data: data}
	value := u.value(0)
	if u.err == nil && len(u.data) > 0 {
		u.err = errMsgpack
	}
	return value, u.err
}

func (u *unpacker) take(n int) []byte {
	if u.err != nil || n < 0 || n > len(u.data) {
		u.err = errMsgpack
		return make([]byte, 8)
	}
	taken := u.data[:n]
	u.data = u.data[n:]
	return taken
}

func (u *unpacker) number(bytes int) int64 {
	var v uint64
	for _, b := range u.take(bytes)[:bytes] {
		v = v<<8 | uint64(b)
	}
	return int64(v)
}

func (u *unpacker) array(n int64, depth int) any {
	if n > int64(len(u.data)) {
		u.err = errMsgpack
		return nil
	}
	found := make([]any, 0, n)
	for ; n > 0 && u.err == nil; n-- {
		found = append(found, u.value(depth+1))
	}
	return found
}

func (u *unpacker) mapping(n int64, depth int) any {
	found := map[string]any{}
	for ; n > 0 && u.err == nil; n-- {
		key, isText := u.value(depth + 1).(string)
		if !isText {
			u.err = errMsgpack
		}
		found[key] = u.value(depth + 1)
	}
	return found
}

func (u *unpacker) value(depth int) any {
	if depth > 32 {
		u.err = errMsgpack
	}
	if u.err != nil {
		return nil
	}
	code := u.take(1)[0]
	switch {
	case code < 0x80:
		return int64(code)
	case code < 0x90:
		return u.mapping(int64(code&15), depth)
	case code < 0xa0:
		return u.array(int64(code&15), depth)
	case code < 0xc0:
		return string(u.take(int(code & 31)))
	case code >= 0xe0:
		return int64(int8(code))
	}
	switch code {
	case 0xc0:
		return nil
	case 0xc2, 0xc3:
		return code == 0xc3
	case 0xc4, 0xc5, 0xc6:
		return append([]byte{}, u.take(int(u.number(1<<(code-0xc4))))...)
	case 0xca:
		return float64(math.Float32frombits(uint32(u.number(4))))
	case 0xcb:
		return math.Float64frombits(uint64(u.number(8)))
	case 0xcc, 0xcd, 0xce, 0xcf:
		return u.number(1 << (code - 0xcc))
	case 0xd0:
		return int64(int8(u.number(1)))
	case 0xd1:
		return int64(int16(u.number(2)))
	case 0xd2:
		return int64(int32(u.number(4)))
	case 0xd3:
		return u.number(8)
	case 0xd9, 0xda, 0xdb:
		return string(u.take(int(u.number(1 << (code - 0xd9)))))
	case 0xdc, 0xdd:
		return u.array(u.number(2<<(code-0xdc)), depth)
	case 0xde, 0xdf:
		return u.mapping(u.number(2<<(code-0xde)), depth)
	}
	u.err = errMsgpack
	return nil
}
