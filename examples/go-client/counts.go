// Counting for long runs: of each publisher, a subscriber must be given every number once, in order.

package main

// Every hundredth answer is reported, for a program that publishes no faster than it is answered.
const reportedEvery = 100

type series struct {
	first, last, seen, repeated, reordered int64
	given                                  map[int64]bool
}

type counts struct {
	of                         map[string]*series
	accepted, refused, unknown int64
	delivered, gaps, moved     int64
}

func newCounts() *counts { return &counts{of: map[string]*series{}} }

// take counts an event, and says whether that is all to be done with it.
func (c *counts) take(event string, fields map[string]any) bool {
	switch event {
	case "delivery":
		c.delivered++
		key := fields["subscriber"].(string) + " of " + fields["publisher"].(string)
		c.saw(key, fields["seq"].(int64))
		return true
	case "answer":
		switch fields["answer"] {
		case "accepted", "unconfirmed":
			c.accepted++
		case "refused":
			c.refused++
		default:
			c.unknown++
		}
		return fields["number"].(int64)%reportedEvery != 0
	case "gap":
		c.gaps++
	case "moved":
		c.moved++
		return true
	}
	return false
}

func (c *counts) saw(key string, number int64) {
	s := c.of[key]
	if s == nil {
		s = &series{first: number, given: map[int64]bool{}}
		c.of[key] = s
	}
	if s.given[number] {
		s.repeated++
		return
	}
	s.given[number] = true
	s.seen++
	if number < s.last {
		s.reordered++
	}
	s.last = max(s.last, number)
}

// report: lost are numbers between 1 and the highest that any subscriber of a publisher was given.
func (c *counts) report(report func(string, map[string]any)) {
	var lost, repeated, reordered, highest int64
	for _, s := range c.of {
		highest = max(highest, s.last)
	}
	for _, s := range c.of {
		lost += highest - s.seen
		repeated += s.repeated
		reordered += s.reordered
	}
	report("counts", map[string]any{
		"accepted": c.accepted, "refused": c.refused, "unknown": c.unknown, "delivered": c.delivered, "gaps": c.gaps,
		"moves": c.moved, "lost": lost, "repeated": repeated, "reordered": reordered, "series": len(c.of),
	})
}
