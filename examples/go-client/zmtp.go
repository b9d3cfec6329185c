// A DEALER socket: the part of ZMTP 3.1 that a client needs, with the NULL mechanism. One frame is one message part.

package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"time"
)

const (
	flagMore    = 1
	flagLong    = 2
	flagCommand = 4
	largestPart = 16 << 20
	dialTime    = 2 * time.Second
	retryTime   = 100 * time.Millisecond
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
	out      chan []byte
	closed   chan struct{}
}

func dial(endpoint string, report chan<- happening) *socket {
	s := &socket{endpoint: endpoint, out: make(chan []byte, 8192), closed: make(chan struct{})}
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
		if greet(conn, reader) == nil {
			for len(s.out) > 0 {
				<-s.out // of the connection before: HELLO says what has to be sent again
			}
			report <- happening{socket: s, up: true}
			ended := make(chan struct{})
			pongs := make(chan []byte, 16)
			go s.write(conn, pongs, ended)
			s.read(reader, pongs, report)
			close(ended)
			report <- happening{socket: s, down: true}
		}
		conn.Close()
		time.Sleep(retryTime)
	}
}

func greet(conn net.Conn, reader *bufio.Reader) error {
	conn.SetDeadline(time.Now().Add(dialTime))
	defer conn.SetDeadline(time.Time{})
	greeting := make([]byte, 64)
	greeting[0], greeting[9], greeting[10], greeting[11] = 0xff, 0x7f, 3, 1
	copy(greeting[12:], "NULL")
	ready := "\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER\x08Identity\x00\x00\x00\x00"
	hello := append(greeting, append([]byte{flagCommand, byte(len(ready))}, ready...)...)
	if _, err := conn.Write(hello); err != nil {
		return err
	}
	theirs := make([]byte, 64)
	if _, err := io.ReadFull(reader, theirs); err != nil {
		return err
	}
	if theirs[0] != 0xff || theirs[10] < 3 || string(theirs[12:17]) != "NULL\x00" {
		return errors.New("the broker does not speak ZMTP 3 with the mechanism NULL")
	}
	flags, body, err := readPart(reader)
	if err == nil && (flags&flagCommand == 0 || !strings.HasPrefix(string(body), "\x05READY")) {
		err = errors.New("the broker did not send READY")
	}
	return err
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
func (s *socket) read(reader *bufio.Reader, pongs chan<- []byte, report chan<- happening) {
	inMessage := false
	for {
		flags, body, err := readPart(reader)
		if err != nil {
			return
		}
		if flags&flagCommand != 0 {
			if strings.HasPrefix(string(body), "\x04PING") && len(body) >= 7 {
				select {
				case pongs <- append([]byte("\x04PONG"), body[7:]...):
				default:
				}
			}
			continue
		}
		isMore := flags&flagMore != 0
		if !isMore && !inMessage {
			report <- happening{socket: s, frame: body}
		}
		inMessage = isMore
	}
}

func (s *socket) write(conn net.Conn, pongs <-chan []byte, ended <-chan struct{}) {
	writer := bufio.NewWriterSize(conn, 1<<16)
	closed := s.closed
	for {
		select {
		case frame := <-s.out:
			writePart(writer, 0, frame)
		case pong := <-pongs:
			writePart(writer, flagCommand, pong)
		case <-ended:
			return
		case <-closed:
			for len(s.out) > 0 {
				writePart(writer, 0, <-s.out)
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
