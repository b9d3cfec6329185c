// One publisher: consecutive numbers, credit, and one answer for every publication (docs/protocol.md, 5).

package main

type publication struct {
	order      int64 // what the application counts
	attributes map[string]any
	sentMicros int64
}

type publisher struct {
	client      *client
	name        string
	incarnation int64
	handle      int64
	isOpen      bool
	head        string
	epoch       int64

	orders   int64         // publications so far
	sent     int64         // the highest number used in this incarnation
	answered int64         // the highest number answered in this incarnation
	through  int64         // the highest number that may be used
	waiting  []publication // unanswered: those from `answered+1` to `sent`, then those that were not sent
	refused  map[int64]string
}

func (c *client) publisher(name string) *publisher {
	p := c.publishers[name]
	if p == nil {
		p = &publisher{client: c, name: name, incarnation: c.incarnation, refused: map[int64]string{}}
		c.publishers[name] = p
		if c.head.wasOpen {
			p.open()
		}
	}
	return p
}

func (p *publisher) publish(attributes map[string]any) {
	p.orders++
	p.waiting = append(p.waiting, publication{p.orders, attributes, p.client.now.UnixMicro()})
	p.pump()
}

// open asks the head under a new handle: answers to an older one are void.
func (p *publisher) open() {
	delete(p.client.handles, p.handle)
	p.client.lastHandle++
	p.handle, p.isOpen = p.client.lastHandle, false
	p.client.handles[p.handle] = p
	p.client.head.say(recordOpen, p.handle, p.name, p.incarnation)
}

func (p *publisher) pump() {
	for p.isOpen && p.sent < p.through && int(p.sent-p.answered) < len(p.waiting) {
		p.sent++
		p.send(p.sent)
	}
}

func (p *publisher) send(number int64) {
	one := p.waiting[number-p.answered-1]
	body := []any{one.attributes, []byte{}}
	p.client.head.say(recordPublish, p.handle, number, 0, one.sentMicros, body)
}

func (p *publisher) onRecord(number int64, f fields) {
	switch number {
	case recordOpened:
		p.onOpened(f.text(1), f.integer(2), f.integer(3), f.integer(4))
	case recordAccepted:
		p.accepted(f.integer(1))
	case recordCredit:
		p.through = max(p.through, f.integer(1))
		p.pump()
	case recordUnconfirmed:
		p.refused[f.integer(1)] = "unconfirmed"
	case recordRefused:
		switch code := f.text(2); {
		case f.integer(1) == 0:
			p.failed(code)
		case code == "oversized" || code == "malformed":
			p.refused[f.integer(1)] = "refused"
			if f.integer(1) == p.answered+1 {
				p.accepted(f.integer(1))
			}
		default: // the number is not used up: begin again above the last one that the head reports
			p.open()
		}
	}
}

// accepted answers all up to a number; those answered one by one before are exceptions.
func (p *publisher) accepted(through int64) {
	for p.answered < min(through, p.sent) {
		p.answered++
		answer := "accepted"
		if exception, is := p.refused[p.answered]; is {
			answer = exception
			delete(p.refused, p.answered)
		}
		p.answer(answer)
	}
}

func (p *publisher) answer(answer string) {
	p.client.report("answer", map[string]any{"publisher": p.name, "number": p.waiting[0].order, "answer": answer})
	p.waiting = p.waiting[1:]
}

func (p *publisher) onOpened(head string, epoch, lastSeq, through int64) {
	isOther := p.sent > 0 && (head != p.head || epoch != p.epoch || lastSeq < p.answered)
	if isOther {
		// The head has lost its memory: what was sent may have been delivered, and must not be sent again.
		for ; p.answered < p.sent; p.answered++ {
			p.answer("unknown")
		}
		p.incarnation++
		p.sent, p.answered, p.through, p.refused = 0, 0, 0, map[int64]string{}
		p.open()
		return
	}
	p.head, p.epoch, p.through, p.isOpen = head, epoch, through, true
	for number := max(lastSeq, p.answered) + 1; number <= p.sent; number++ {
		p.send(number)
	}
	p.pump()
}

func (p *publisher) failed(code string) {
	p.isOpen = false
	p.client.report("failed", map[string]any{"publisher": p.name, "code": code})
	delete(p.client.publishers, p.name)
}
