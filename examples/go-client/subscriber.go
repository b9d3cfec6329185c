// One subscriber after docs/simple-client.md: RESUME from a token, the stream, MOVED. It never sends ATTACH.

package main

import "time"

const (
	streamTime  = 30 * time.Second
	answerTime  = 30 * time.Second
	attachTime  = 5 * time.Second
	conflictsAt = 8
)

type origin struct {
	head  string
	epoch int64
}

type token struct {
	origin
	position int64
}

type subscriber struct {
	client *client
	name   string

	// what a RESUME says
	n        int64
	version  int64
	list     []any
	token    *token
	marks    map[origin]int64
	session  any
	unacked  map[int64]string // versions that wait for SUBACK, with the text that came in them
	texts    map[int64]string
	isPaused bool

	// where it is
	link       *link
	attachment int64
	isLive     bool // RESUMED has come
	isAsked    bool // RESUME has been sent
	isJoining  bool
	wakeAt     time.Time // of the next attempt, or of the end of this one's patience
	askedSince time.Time
	exclude    string
	attempts   int
	conflicts  int
	isFinal    bool
}

func (c *client) subscriber(name string) *subscriber {
	s := &subscriber{
		client: c, name: name, version: 1, marks: map[origin]int64{},
		texts: map[int64]string{}, unacked: map[int64]string{}, wakeAt: c.now,
	}
	c.subscribers[name] = s
	return s
}

// subscribe adds to the list: with the next RESUME, or by SUBS.
func (s *subscriber) subscribe(text string) {
	s.version++
	item := []any{int64(len(s.list) + 1), text, map[string]any{}}
	s.list = append(s.list, item)
	s.unacked[s.version], s.texts[s.version] = text, text
	if s.isAsked {
		s.link.say(recordSubs, s.attachment, s.version, []any{item}, []any{})
	}
}

func (s *subscriber) close(withdraw bool) {
	s.detach(withdraw)
	delete(s.client.subscribers, s.name)
}

func (s *subscriber) pause(isPaused bool) {
	s.isPaused = isPaused
	if s.isLive && isPaused {
		s.link.say(recordPause, s.attachment)
	} else if s.isLive {
		s.link.say(recordContinue, s.attachment)
	}
}

func (s *subscriber) detach(withdraw bool) {
	if s.isAsked {
		s.link.say(recordDetach, []any{s.attachment}, withdraw)
	}
	s.off()
}

// off takes it off its attachment: records for that number are ignored from here on.
func (s *subscriber) off() {
	delete(s.client.attachments, s.attachment)
	s.link, s.attachment, s.isLive, s.isAsked, s.isJoining = nil, 0, false, false, false
}

// again: the attachment is over; ask for an edge after a while, and go on from the token.
func (s *subscriber) again(exclude string, wait time.Duration) {
	s.off()
	s.exclude, s.wakeAt = exclude, s.client.now.Add(wait)
}

func (s *subscriber) tick() {
	if s.isFinal || s.isLive || s.client.now.Before(s.wakeAt) {
		return
	}
	if s.link != nil { // the edge has not answered in time
		edge := s.link.name
		s.detach(false)
		s.again(edge, s.client.backoff(s))
		return
	}
	s.join()
}

func (s *subscriber) join() {
	s.isJoining, s.wakeAt = true, s.client.now.Add(answerTime)
	if !s.client.head.wasOpen {
		return
	}
	head, exclude := "", []any{}
	if s.token != nil {
		if s.askedSince.IsZero() {
			s.askedSince = s.client.now
		}
		if s.client.now.Sub(s.askedSince) < streamTime {
			head = s.token.head
		}
	}
	if s.exclude != "" {
		exclude = append(exclude, s.exclude)
	}
	s.client.head.say(recordJoin, s.name, exclude, "", head)
}

func (s *subscriber) headLost() {
	if s.isJoining {
		s.wakeAt = s.client.now.Add(answerTime)
	}
}

func (s *subscriber) onPlaced(edge, endpoint, key string) {
	if s.isJoining {
		s.isJoining, s.askedSince = false, time.Time{}
		s.attach(edge, endpoint, key)
	}
}

func (s *subscriber) onUnplaced(wait time.Duration) {
	if s.isJoining {
		s.isJoining, s.wakeAt = false, s.client.now.Add(wait)
	}
}

func (s *subscriber) attach(edge, endpoint, key string) {
	s.link = s.client.edge(edge, endpoint, key)
	s.wakeAt = s.client.now.Add(attachTime)
	if s.link.wasOpen {
		s.resume()
	}
}

func (s *subscriber) linkOpen(l *link) {
	if l == s.client.head && s.isJoining {
		s.join()
	} else if l == s.link && !s.isAsked {
		s.resume()
	}
}

func (s *subscriber) resume() {
	s.n += 2
	s.client.lastNumber++
	s.attachment, s.isAsked = s.client.lastNumber, true
	s.client.attachments[s.attachment] = s
	s.wakeAt = s.client.now.Add(answerTime)
	var from any
	if s.token != nil {
		from = []any{s.token.head, s.token.epoch, s.token.position}
	}
	marks := []any{}
	for of, offset := range s.marks {
		marks = append(marks, []any{of.head, of.epoch, offset})
	}
	policy := map[string]any{"slow": "", "queue_bytes": 0, "block_seconds": 0.0}
	s.link.say(recordResume, s.attachment, s.name, []any{s.client.incarnation, s.n}, s.version, s.list, policy,
		from, marks, s.session)
}

// -- records of the edge

func (s *subscriber) onRecord(number int64, f fields) {
	switch number {
	case recordResumed:
		s.onResumed(f)
	case recordDeliver:
		if s.isLive {
			s.onItem(f.array(1))
		}
	case recordEpoch:
		if s.isLive {
			s.onGap(f.array(1))
		}
	case recordSuback:
		s.onSuback(f.integer(1))
	case recordSubRefused:
		s.onRefused(f.integer(2), f.text(3))
	case recordClosed:
		s.onClosed(f.text(1))
	}
}

func (s *subscriber) onResumed(f fields) {
	s.isLive, s.session, s.attempts, s.conflicts, s.exclude = true, nil, 0, 0, ""
	if gap := f.array(4); gap != nil {
		s.onGap(gap)
	}
	if f.boolean(5) { // lapsed: what counted does not until the next SUBACK
		for version, text := range s.texts {
			s.unacked[version] = text
		}
	}
	s.token = &token{origin{f.text(1), f.integer(2)}, f.integer(3)}
	if s.isPaused {
		s.pause(true)
	}
}

func (s *subscriber) onItem(item fields) {
	if item.integer(0) == recordGap {
		s.onGap(item)
		return
	}
	of, offset := origin{item.text(2), item.integer(3)}, item.integer(4)
	if offset > s.marks[of] { // at or below it has been delivered before
		s.marks[of] = offset
		body := fields(item.array(10))
		s.client.report("delivery", map[string]any{
			"subscriber": s.name, "publisher": item.text(5), "incarnation": item.integer(6), "seq": item.integer(7),
			"attributes": body.at(0),
		})
	}
	s.reach(item.integer(1))
}

func (s *subscriber) onGap(gap fields) {
	isMissing := len(gap.array(6)) == 0
	for _, one := range gap.array(6) {
		last, _ := one.([]any)
		of, offset := origin{fields(last).text(0), fields(last).integer(1)}, fields(last).integer(2)
		if offset > s.marks[of] {
			s.marks[of], isMissing = offset, true
		}
	}
	s.token = &token{origin{gap.text(1), gap.integer(4)}, gap.integer(5)}
	if isMissing {
		s.client.report("gap", map[string]any{"subscriber": s.name, "reason": gap.text(7)})
	}
}

func (s *subscriber) reach(position int64) { s.token.position = max(s.token.position, position) }

func (s *subscriber) onSuback(version int64) {
	for at := int64(1); at <= version; at++ {
		if text, is := s.unacked[at]; is {
			delete(s.unacked, at)
			s.client.report("counts", map[string]any{"subscriber": s.name, "subscription": text})
		}
	}
}

func (s *subscriber) onRefused(id int64, why string) {
	for i, item := range s.list {
		if one := fields(item.([]any)); one.integer(0) == id {
			s.list = append(s.list[:i:i], s.list[i+1:]...)
			s.client.report("refused", map[string]any{"subscriber": s.name, "subscription": one.text(1), "text": why})
			return
		}
	}
}

func (s *subscriber) onClosed(code string) {
	edge := s.link.name
	switch code {
	case "slow", "role", "policy", "range":
		s.fail(code)
		return
	case "epoch", "released", "replaced":
		if s.conflicts++; s.conflicts >= conflictsAt {
			s.fail("conflict")
			return
		}
	}
	if code != "leaving" && code != "full" {
		edge = ""
	}
	s.again(edge, s.client.backoff(s))
}

func (s *subscriber) fail(code string) {
	s.off()
	s.isFinal = true
	s.client.report("failed", map[string]any{"subscriber": s.name, "code": code})
}

// onMoved: RESUME at the edge that it names, with its session; or ask for another edge than this one.
func (s *subscriber) onMoved(edge, endpoint, key string, session any) {
	left := s.link.name
	s.client.report("moved", map[string]any{"subscriber": s.name, "edge": edge})
	s.again(left, 0)
	if edge != "" && endpoint != "" {
		s.session, s.exclude = session, ""
		s.attach(edge, endpoint, key)
	}
}

// onEnd cannot come to a client without ATTACH; it has been cut if it comes, and goes on from the token of END.
func (s *subscriber) onEnd(session string, at fields) {
	s.n++
	s.token, s.session = &token{origin{at.text(0), at.integer(1)}, at.integer(2)}, session
	s.detach(false)
	s.again("", 0)
}
