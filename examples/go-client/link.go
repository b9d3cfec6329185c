// The reliable link of docs/protocol.md, 3.1, as the side that dials has it.

package main

import (
	"math/rand/v2"
	"time"
)

const (
	kindData = iota
	kindAck
	kindHello
	kindHelloOK
	kindWho
	kindPing
	kindPong
	kindBye
	kindControl
	kindRefuse

	protocolVersion = 1
	flagAckNow      = 1
	windowBytes     = 1 << 20
	windowFrames    = 1024
	frameBytes      = 64 << 10
	heartbeat       = time.Second
	deadTime        = 5 * time.Second
	awayTime        = 2 * time.Second
	ackTime         = 20 * time.Millisecond
)

type sentFrame struct {
	number int64
	bytes  []byte
}

// link is one link to a broker: its numbers, what is unacknowledged, and records that wait to be sent.
type link struct {
	client   *client
	name     string // of an edge; empty for the head
	endpoint string
	socket   *socket
	id       uint32
	isOpen   bool
	wasOpen  bool
	isUp     bool
	isBehind bool // a frame was missing

	next     int64 // number of the next frame sent
	credit   int64 // highest number that may be sent
	unacked  []sentFrame
	inFlight int
	queue    [][]byte // encoded records

	received int64 // highest number taken in order
	granted  int64
	ackDue   time.Time

	heard, progressed, helloAt, resyncAt, downSince, idleSince time.Time
}

// newLink dials a broker; `key` is its public key, empty on plain TCP. A key that is none cannot lead to a connection.
func (c *client) newLink(name, endpoint, key string) *link {
	l := &link{client: c, name: name, endpoint: endpoint, downSince: c.now, heard: c.now, idleSince: c.now}
	l.restart()
	public, err := z85(key)
	if err != nil {
		public = make([]byte, keyBytes)
	}
	l.socket = dial(endpoint, c.secret, public, c.happenings)
	c.links[l.socket] = l
	return l
}

// restart begins a new link with a new number, at 1 in both directions.
func (l *link) restart() {
	l.id, l.isOpen, l.wasOpen = rand.Uint32(), false, false
	l.next, l.credit, l.received, l.granted, l.inFlight = 1, 0, 0, 0, 0
	l.unacked, l.queue, l.ackDue = nil, nil, time.Time{}
}

func (l *link) frame(kind int, fields ...any) []byte {
	return pack(nil, append([]any{protocolVersion, kind}, fields...))
}

func (l *link) out(frame []byte) {
	if l.isUp {
		l.socket.send(frame)
	}
}

func (l *link) hello() {
	l.isOpen, l.helloAt = false, l.client.now
	info := map[string]any{"name": l.client.name, "role": "client", "incarnation": l.client.incarnation}
	l.out(l.frame(kindHello, l.id, l.received, l.wasOpen, info))
}

// say queues a record; it leaves in the next DATA frame that window and credit allow.
func (l *link) say(record ...any) { l.queue = append(l.queue, pack(nil, record)) }

func (l *link) flush() {
	for l.isOpen && len(l.queue) > 0 && l.next <= l.credit && l.inFlight < windowBytes {
		count, size := 0, 0
		for count < len(l.queue) && (count == 0 || size+len(l.queue[count]) <= frameBytes) {
			size += len(l.queue[count])
			count++
		}
		frame := append([]byte{0x98}, pack(nil, protocolVersion)...)
		for _, field := range []any{kindData, l.id, 0, l.next, l.received, l.grant()} {
			frame = pack(frame, field)
		}
		frame = packSize(frame, count, 0x90, 16, 0, 0xdc, 0xdd)
		for _, record := range l.queue[:count] {
			frame = append(frame, record...)
		}
		if len(l.unacked) == 0 {
			l.progressed = l.client.now
		}
		l.queue = l.queue[count:]
		l.unacked = append(l.unacked, sentFrame{l.next, frame})
		l.inFlight += len(frame)
		l.next++
		l.ackDue = time.Time{}
		l.out(frame)
	}
}

func (l *link) grant() int64 {
	l.granted = l.received + windowFrames
	return l.granted
}

func (l *link) ack() {
	l.ackDue = time.Time{}
	l.out(l.frame(kindAck, l.id, l.received, l.grant()))
}

func (l *link) acknowledged(ack, credit int64) {
	if credit > l.credit {
		l.credit, l.progressed = credit, l.client.now
	}
	for len(l.unacked) > 0 && l.unacked[0].number <= ack {
		l.inFlight -= len(l.unacked[0].bytes)
		l.unacked = l.unacked[1:]
		l.progressed = l.client.now
	}
}

// receive takes one frame of the broker.
func (l *link) receive(data []byte) {
	value, err := unpack(data)
	frame, isArray := value.([]any)
	if err != nil || !isArray || len(frame) < 2 || integer(frame[0]) != protocolVersion {
		return // a frame that is not understood is refused whole; the link goes on
	}
	f := fields(frame[2:])
	kind := integer(frame[1])
	if kind != kindWho && uint32(f.integer(0)) != l.id {
		return
	}
	l.heard = l.client.now
	switch kind {
	case kindHelloOK:
		l.onHelloOK(f)
	case kindWho:
		// Every frame on a connection without a link is answered with WHO: one HELLO answers them all.
		if l.isOpen || l.client.now.Sub(l.helloAt) >= heartbeat {
			l.hello()
		}
	case kindData:
		l.onData(f)
	case kindAck:
		l.acknowledged(f.integer(1), f.integer(2))
	case kindPing:
		l.out(l.frame(kindPong, l.id, f.integer(1)))
	case kindBye:
		l.client.linkOver(l)
	case kindRefuse:
		l.client.linkOver(l)
	}
}

func (l *link) onHelloOK(f fields) {
	if l.isOpen {
		return // of a HELLO that was repeated
	}
	if f.boolean(2) {
		if l.wasOpen {
			l.client.linkOver(l)
		}
		return
	}
	isNew := !l.wasOpen
	l.isOpen, l.wasOpen, l.isBehind, l.progressed = true, true, false, l.client.now
	l.acknowledged(f.integer(1), l.credit)
	l.ack()
	for _, sent := range l.unacked {
		l.out(sent.bytes)
	}
	if isNew {
		l.client.linkOpen(l)
	}
}

func (l *link) onData(f fields) {
	number := f.integer(2)
	l.acknowledged(f.integer(3), f.integer(4))
	if !l.isOpen {
		return
	}
	if number <= l.received {
		l.ack() // it came again, so its acknowledgement was lost
		return
	}
	if number > l.received+1 {
		l.isBehind = true // resynchronise, at most once per heartbeat: `tick` sees to it
		return
	}
	l.received = number
	if l.ackDue.IsZero() {
		l.ackDue = l.client.now.Add(ackTime)
	}
	if f.integer(1)&flagAckNow != 0 || l.granted-l.received < windowFrames-32 {
		l.ackDue = l.client.now
	}
	for _, raw := range f.array(5) {
		record, isArray := raw.([]any)
		if isArray && len(record) > 0 && !l.client.isOver(l) {
			l.client.onRecord(l, integer(record[0]), fields(record[1:]))
		}
	}
}

// tick repeats HELLO, sends PING and acknowledgements, and gives up a broker that is silent or away.
func (l *link) tick(isBeat bool) {
	now := l.client.now
	isAway := !l.isUp && now.Sub(l.downSince) > awayTime
	if l.wasOpen && (now.Sub(l.heard) > deadTime || (isAway && l.name != "")) {
		l.client.linkOver(l)
		return
	}
	if isBeat && l.isUp {
		if !l.isOpen {
			l.hello()
		} else {
			l.out(l.frame(kindPing, l.id, now.UnixMicro()))
			stalled := len(l.unacked) > 0 || l.next > l.credit
			if stalled && now.Sub(l.progressed) > 3*heartbeat {
				l.hello()
			}
		}
	}
	if l.isOpen && l.isBehind && now.Sub(l.resyncAt) >= heartbeat {
		l.resyncAt = now
		l.hello()
	}
	l.flush()
	if l.isOpen && !l.ackDue.IsZero() && !now.Before(l.ackDue) {
		l.ack()
	}
}

// fields reads the elements of an array by place; what is missing or of another type is zero.
type fields []any

func (f fields) at(i int) any {
	if i < len(f) {
		return f[i]
	}
	return nil
}

func (f fields) integer(i int) int64 { return integer(f.at(i)) }
func (f fields) text(i int) string   { text, _ := f.at(i).(string); return text }
func (f fields) boolean(i int) bool  { is, _ := f.at(i).(bool); return is }
func (f fields) array(i int) []any   { found, _ := f.at(i).([]any); return found }

func integer(value any) int64 {
	number, _ := value.(int64)
	return number
}
