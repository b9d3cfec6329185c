// A DEALER socket: the part of ZMTP 3.1 that a client needs, with the mechanisms NULL and CURVE. One frame is one message part.

package main

import (
	"bufio"
	"crypto/ecdh"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"time"
)

const (
	flagMore     = 1
	flagLong     = 2
	flagCommand  = 4
	largestPart  = 16 << 20
	dialTime     = 2 * time.Second
	retryTime    = 100 * time.Millisecond
	metadata     = "\x0bSocket-Type\x00\x00\x00\x06DEALER\x08Identity\x00\x00\x00\x00"
	innerMore    = 1
	innerCommand = 2
)

// happening is what a connection reports: it was made (up), it broke (down), or a frame came.
type happening struct {
	socket *socket
	up     bool
	down   bool
	frame  []byte
}

// socket keeps one connection to an endpoint, and makes it again when it breaks. It reports on a channel.
type socket struct {
	endpoint string
	secret   *ecdh.PrivateKey // nil: plain TCP
	public   []byte           // the broker's key
	out      chan []byte
	closed   chan struct{}
}

func dial(endpoint string, secret *ecdh.PrivateKey, public []byte, report chan<- happening) *socket {
	s := &socket{endpoint: endpoint, secret: secret, public: public, out: make(chan []byte, 8192), closed: make(chan struct{})}
	go s.keep(report)
	return s
}

// send queues a frame. What cannot be queued is dropped, as on a broken connection: the link repeats it.
func (s *socket) send(frame []byte) {
	select {
	case s.out <- frame:
	default:
	}
}

// close ends the connection once what was queued has been written.
func (s *socket) close() { close(s.closed) }

func (s *socket) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

func (s *socket) keep(report chan<- happening) {
	for !s.isClosed() {
		conn, err := net.DialTimeout("tcp", strings.TrimPrefix(s.endpoint, "tcp://"), dialTime)
		if err != nil {
			time.Sleep(retryTime)
			continue
		}
		reader := bufio.NewReaderSize(conn, 1<<16)
		if secured, err := s.greet(conn, reader); err == nil {
			for len(s.out) > 0 {
				<-s.out // of the connection before: HELLO says what has to be sent again
			}
			report <- happening{socket: s, up: true}
			ended := make(chan struct{})
			pongs := make(chan []byte, 16)
			go s.write(conn, secured, pongs, ended)
			s.read(reader, secured, pongs, report)
			close(ended)
			report <- happening{socket: s, down: true}
		}
		conn.Close()
		time.Sleep(retryTime)
	}
}

// greet agrees on the mechanism, and makes the channel of a connection with keys.
func (s *socket) greet(conn net.Conn, reader *bufio.Reader) (*channel, error) {
	conn.SetDeadline(time.Now().Add(dialTime))
	defer conn.SetDeadline(time.Time{})
	greeting := make([]byte, 64)
	greeting[0], greeting[9], greeting[10], greeting[11] = 0xff, 0x7f, 3, 1
	mechanism := "NULL"
	if s.secret != nil {
		mechanism = "CURVE"
	}
	copy(greeting[12:], mechanism)
	if _, err := conn.Write(greeting); err != nil {
		return nil, err
	}
	theirs := make([]byte, 64)
	if _, err := io.ReadFull(reader, theirs); err != nil {
		return nil, err
	}
	if theirs[0] != 0xff || theirs[10] < 3 || strings.TrimRight(string(theirs[12:32]), "\x00") != mechanism {
		return nil, errors.New("the broker does not speak ZMTP 3 with the mechanism " + mechanism)
	}
	if s.secret != nil {
		return curveHandshake(conn, reader, s.secret, s.public)
	}
	if err := sendCommand(conn, []byte("\x05READY"+metadata)); err != nil {
		return nil, err
	}
	_, err := receiveCommand(reader, "\x05READY", 0)
	return nil, err
}

func readPart(reader *bufio.Reader) (byte, []byte, error) {
	flags, err := reader.ReadByte()
	if err != nil {
		return 0, nil, err
	}
	size := make([]byte, 1)
	if flags&flagLong != 0 {
		size = make([]byte, 8)
	}
	if _, err := io.ReadFull(reader, size); err != nil {
		return 0, nil, err
	}
	length := binary.BigEndian.Uint64(append(make([]byte, 8-len(size)), size...))
	if length > largestPart {
		return 0, nil, errors.New("a message part is too large")
	}
	body := make([]byte, length)
	_, err = io.ReadFull(reader, body)
	return flags, body, err
}

// read reports messages of one part, discards others, and answers the PING of ZMTP.
func (s *socket) read(reader *bufio.Reader, secured *channel, pongs chan<- []byte, report chan<- happening) {
	inMessage := false
	for {
		flags, body, err := readPart(reader)
		if err != nil {
			return
		}
		isCommand, isMore := flags&flagCommand != 0, flags&flagMore != 0
		if secured != nil {
			if flags, body, err = secured.open(body); err != nil {
				return
			}
			isCommand, isMore = flags&innerCommand != 0, flags&innerMore != 0
		}
		if isCommand {
			if strings.HasPrefix(string(body), "\x04PING") && len(body) >= 7 {
				select {
				case pongs <- append([]byte("\x04PONG"), body[7:]...):
				default:
				}
			}
			continue
		}
		if !isMore && !inMessage {
			report <- happening{socket: s, frame: body}
		}
		inMessage = isMore
	}
}

func (s *socket) write(conn net.Conn, secured *channel, pongs <-chan []byte, ended <-chan struct{}) {
	writer := bufio.NewWriterSize(conn, 1<<16)
	put := func(isCommand bool, body []byte) {
		switch {
		case secured != nil && isCommand:
			writePart(writer, 0, secured.seal(innerCommand, body))
		case secured != nil:
			writePart(writer, 0, secured.seal(0, body))
		case isCommand:
			writePart(writer, flagCommand, body)
		default:
			writePart(writer, 0, body)
		}
	}
	closed := s.closed
	for {
		select {
		case frame := <-s.out:
			put(false, frame)
		case pong := <-pongs:
			put(true, pong)
		case <-ended:
			return
		case <-closed:
			for len(s.out) > 0 {
				put(false, <-s.out)
			}
			writer.Flush()
			conn.Close()
			return
		}
		if len(s.out) == 0 && len(pongs) == 0 && writer.Flush() != nil {
			conn.Close()
			return
		}
	}
}

func writePart(writer *bufio.Writer, flags byte, body []byte) {
	if len(body) < 256 {
		writer.Write([]byte{flags, byte(len(body))})
	} else {
		writer.WriteByte(flags | flagLong)
		writer.Write(binary.BigEndian.AppendUint64(nil, uint64(len(body))))
	}
	writer.Write(body) // errors stay with the writer until Flush
}
