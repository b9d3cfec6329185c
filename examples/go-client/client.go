// One client: a link to the head, one to each edge that serves a subscriber here, and the loop that drives them.

package main

import (
	"crypto/ecdh"
	"time"
)

const (
	recordPublish     = 1
	recordDeliver     = 3
	recordGap         = 4
	recordProgress    = 6
	recordOpen        = 10
	recordOpened      = 11
	recordAccepted    = 12
	recordRefused     = 13
	recordCredit      = 14
	recordUnconfirmed = 15
	recordClose       = 16
	recordJoin        = 20
	recordPlaced      = 21
	recordUnplaced    = 22
	recordSeeHead     = 28
	recordResume      = 30
	recordResumed     = 31
	recordSuback      = 32
	recordSubs        = 33
	recordDetach      = 34
	recordClosed      = 35
	recordMoved       = 36
	recordPause       = 37
	recordContinue    = 38
	recordSubRefused  = 39
	recordEpoch       = 40
	recordEnd         = 80
)

// client has one goroutine, `run`; sockets and standard input speak to it through channels.
type client struct {
	name        string
	secret      *ecdh.PrivateKey // nil: plain TCP
	incarnation int64
	now         time.Time
	happenings  chan happening
	links       map[*socket]*link
	head        *link
	edges       map[string]*link
	publishers  map[string]*publisher
	handles     map[int64]*publisher
	subscribers map[string]*subscriber
	attachments map[int64]*subscriber // numbers are not used again on any link
	lastHandle  int64
	lastNumber  int64
	report      func(event string, fields map[string]any)
}

func newClient(name string, to access, incarnation int64, report func(string, map[string]any)) *client {
	c := &client{
		name: name, secret: to.secret, incarnation: incarnation, now: time.Now(), report: report,
		happenings: make(chan happening, 1024), links: map[*socket]*link{}, edges: map[string]*link{},
		publishers: map[string]*publisher{}, handles: map[int64]*publisher{},
		subscribers: map[string]*subscriber{}, attachments: map[int64]*subscriber{},
	}
	c.head = c.newLink("", to.head, to.headKey)
	return c
}

// run takes what happens until `orders` is closed or an order ends it.
func (c *client) run(orders <-chan order, obey func(order) bool) {
	ticks := time.NewTicker(10 * time.Millisecond)
	defer ticks.Stop()
	nextBeat := c.now
	for {
		select {
		case one := <-c.happenings:
			c.now = time.Now()
			c.onHappening(one)
			for more := len(c.happenings); more > 0; more-- {
				c.onHappening(<-c.happenings)
			}
		case one, isOpen := <-orders:
			c.now = time.Now()
			if !isOpen || !obey(one) {
				return
			}
		case <-ticks.C:
			c.now = time.Now()
		}
		for _, s := range c.subscribers {
			s.tick()
		}
		isBeat := !c.now.Before(nextBeat)
		if isBeat {
			nextBeat = c.now.Add(heartbeat)
		}
		for _, l := range c.links {
			l.tick(isBeat)
		}
		c.closeIdle()
	}
}

func (c *client) onHappening(one happening) {
	l := c.links[one.socket]
	switch {
	case l == nil:
	case one.up:
		l.isUp = true
		l.hello()
	case one.down:
		l.isUp, l.isOpen, l.downSince = false, false, c.now
	default:
		l.receive(one.frame)
	}
}

// leave ends everything in good order.
func (c *client) leave() {
	for _, s := range c.subscribers {
		s.close(true)
	}
	for _, p := range c.publishers {
		c.head.say(recordClose, p.handle)
	}
	for _, l := range c.links {
		l.flush()
		if l.wasOpen {
			l.out(l.frame(kindBye, l.id, "the client is leaving"))
		}
		l.socket.close()
	}
	time.Sleep(100 * time.Millisecond) // for the sockets to write it
}

// -- links

func (c *client) isOver(l *link) bool { return c.links[l.socket] != l || !l.wasOpen }

func (c *client) edge(name, endpoint, key string) *link {
	l := c.edges[name]
	if l != nil && l.endpoint != endpoint {
		c.linkOver(l) // the edge has another address now
		l = nil
	}
	if l == nil {
		l = c.newLink(name, endpoint, key)
		c.edges[name] = l
	}
	return l
}

func (c *client) linkOpen(l *link) {
	if l == c.head {
		for _, p := range c.publishers {
			p.open()
		}
	}
	for _, s := range c.subscribers {
		s.linkOpen(l)
	}
}

// linkOver ends a link and closes its attachments. The head is dialled for ever; an edge only if it is named again.
func (c *client) linkOver(l *link) {
	if l == c.head {
		for _, p := range c.publishers {
			p.isOpen = false
		}
		for _, s := range c.subscribers {
			s.headLost()
		}
		l.restart()
		l.heard = c.now
		l.hello()
		return
	}
	c.drop(l)
	for _, s := range c.subscribers {
		if s.link == l {
			s.again(l.name, c.backoff(s))
		}
	}
}

func (c *client) drop(l *link) {
	delete(c.links, l.socket)
	delete(c.edges, l.name)
	l.socket.close()
}

// closeIdle closes links to edges that serve no subscriber, once DETACH has been acknowledged.
func (c *client) closeIdle() {
	for _, l := range c.edges {
		isUsed := len(l.queue) > 0 || len(l.unacked) > 0
		for _, s := range c.subscribers {
			isUsed = isUsed || s.link == l
		}
		if isUsed {
			l.idleSince = c.now
		} else if c.now.Sub(l.idleSince) > time.Second {
			if l.wasOpen {
				l.out(l.frame(kindBye, l.id, "no subscriber here needs it"))
			}
			c.drop(l)
		}
	}
}

func (c *client) backoff(s *subscriber) time.Duration {
	s.attempts++
	wait := 50 * time.Millisecond << min(s.attempts, 6)
	return wait/2 + time.Duration(c.now.UnixNano()%int64(wait/2))
}

// -- records

func (c *client) onRecord(l *link, number int64, f fields) {
	if l == c.head {
		c.onHeadRecord(number, f)
		return
	}
	switch number {
	case recordProgress:
		behind := map[int64]bool{}
		for _, one := range f.array(1) {
			behind[integer(one)] = true
		}
		for _, s := range c.subscribers {
			if s.link == l && s.isLive && !behind[s.attachment] {
				s.reach(f.integer(0))
			}
		}
	case recordMoved:
		for _, one := range f.array(0) {
			if s := c.serves(l, integer(one)); s != nil {
				s.onMoved(f.text(1), f.text(2), f.text(3), f.at(4))
			}
		}
	case recordEnd:
		for _, one := range f.array(2) {
			if s := c.serves(l, integer(one)); s != nil {
				s.onEnd(f.text(0), f.array(1))
			}
		}
	case recordDeliver, recordResumed, recordSuback, recordClosed, recordSubRefused, recordEpoch:
		// a record for an attachment that is over is ignored
		if s := c.serves(l, f.integer(0)); s != nil {
			s.onRecord(number, f)
		}
	}
}

func (c *client) serves(l *link, attachment int64) *subscriber {
	s := c.attachments[attachment]
	if s == nil || s.link != l || s.attachment != attachment {
		return nil
	}
	return s
}

func (c *client) onHeadRecord(number int64, f fields) {
	switch number {
	case recordOpened, recordAccepted, recordRefused, recordCredit, recordUnconfirmed:
		if p := c.handles[f.integer(0)]; p != nil {
			p.onRecord(number, f)
		}
	case recordPlaced:
		if s := c.subscribers[f.text(0)]; s != nil {
			s.onPlaced(f.text(1), f.text(2), f.text(3))
		}
	case recordUnplaced:
		if s := c.subscribers[f.text(0)]; s != nil {
			seconds, isFloat := f.at(2).(float64)
			if !isFloat {
				seconds = float64(f.integer(2))
			}
			s.onUnplaced(time.Duration(seconds * float64(time.Second)))
		}
	case recordSeeHead:
		c.seeHead(f.text(1), f.text(2))
	}
}

// seeHead follows an edge that was asked in place of a head: it names its head, or does not know it yet.
func (c *client) seeHead(endpoint, key string) {
	for _, p := range c.publishers {
		p.isOpen = false
	}
	for _, s := range c.subscribers {
		s.headLost()
	}
	c.head.out(c.head.frame(kindBye, c.head.id, "it is an edge"))
	if endpoint == "" {
		c.head.restart()
		c.head.helloAt = c.now // it is asked again a little later
		return
	}
	c.drop(c.head)
	c.head = c.newLink("", endpoint, key)
}
