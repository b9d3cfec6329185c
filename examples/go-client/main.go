// A client of Plimsoll in Go, written from docs/simple-client.md alone, without any package but the standard library.
//
// It is driven as `plimsoll conformance` drives a client (docs/conformance.md): orders on standard input, reports on
// standard output. With -count it counts what its subscribers are given instead of reporting each delivery.
//
//	go build -o go-client . && plimsoll conformance --profile simple -- ./go-client
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"
)

type order struct {
	Do           string         `json:"do"`
	Subscriber   string         `json:"subscriber"`
	Subscription string         `json:"subscription"`
	Token        []any          `json:"token"`
	Watermarks   [][]any        `json:"watermarks"`
	Withdraw     bool           `json:"withdraw"`
	Publisher    string         `json:"publisher"`
	Attributes   map[string]any `json:"attributes"`
	Count        int            `json:"count"`
}

func main() {
	isCounting := flag.Bool("count", false, "count deliveries by publisher number, and report the counts on `stop`")
	head := flag.String("head", os.Getenv("PLIMSOLL_HEAD"), "address of the head, such as tcp://127.0.0.1:7000")
	file := flag.String("file", "", "connection file, as `plimsoll client-config NAME` prints it; instead of -head")
	name := flag.String("name", fmt.Sprintf("go-%d", os.Getpid()), "name of this client, unique in the fleet")
	flag.Parse()
	to := access{head: *head}
	if *file != "" {
		var err error
		if to, err = readAccess(*file); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	out := bufio.NewWriter(os.Stdout)
	counts := newCounts()
	report := func(event string, fields map[string]any) {
		if *isCounting && counts.take(event, fields) {
			return
		}
		fields["event"] = event
		line, _ := json.Marshal(fields)
		out.Write(append(line, '\n'))
		out.Flush()
	}
	orders := make(chan order)
	go readOrders(orders)
	c := newClient(*name, to, time.Now().UnixMilli(), report)
	c.run(orders, func(one order) bool { return c.obey(one) })
	if *isCounting {
		counts.report(report)
	}
	c.leave()
}

func readOrders(orders chan<- order) {
	defer close(orders)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var one order
		decoder := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		decoder.UseNumber() // epochs have more digits than a float
		if err := decoder.Decode(&one); err != nil {
			fmt.Fprintln(os.Stderr, "an order that cannot be read:", err)
			os.Exit(2)
		}
		orders <- one
	}
}

// obey carries one order out; false ends the client.
func (c *client) obey(one order) bool {
	s := c.subscribers[one.Subscriber]
	switch one.Do {
	case "subscribe":
		if s == nil {
			s = c.subscriber(one.Subscriber)
			if at := plainFields(one.Token); len(at) == 3 {
				s.token = &token{origin{at.text(0), at.integer(1)}, at.integer(2)}
			}
			for _, mark := range one.Watermarks {
				at := plainFields(mark)
				s.marks[origin{at.text(0), at.integer(1)}] = at.integer(2)
			}
		}
		s.subscribe(one.Subscription)
	case "publish":
		for i := 0; i < max(1, one.Count); i++ {
			c.publisher(one.Publisher).publish(plainAttributes(one.Attributes))
		}
	case "close":
		if s != nil {
			s.close(one.Withdraw)
		}
	case "pause", "continue":
		if s != nil {
			s.pause(one.Do == "pause")
		}
	case "position":
		c.reportPositions()
	case "stop":
		return false
	}
	return true
}

func (c *client) reportPositions() {
	for name, s := range c.subscribers {
		marks := []any{}
		for of, offset := range s.marks {
			marks = append(marks, []any{of.head, of.epoch, offset})
		}
		var at any
		if s.token != nil {
			at = []any{s.token.head, s.token.epoch, s.token.position}
		}
		edge := ""
		if s.isLive {
			edge = s.link.name
		}
		c.report("position", map[string]any{"subscriber": name, "token": at, "watermarks": marks, "edge": edge})
	}
}

// plainFields makes integers and floats of the numbers of JSON.
func plainFields(values []any) fields {
	found := fields{}
	for _, value := range values {
		found = append(found, plainValue(value))
	}
	return found
}

func plainAttributes(values map[string]any) map[string]any {
	found := map[string]any{}
	for name, value := range values {
		found[name] = plainValue(value)
	}
	return found
}

func plainValue(value any) any {
	number, isNumber := value.(json.Number)
	if !isNumber {
		return value
	}
	if whole, err := number.Int64(); err == nil {
		return whole
	}
	fraction, _ := number.Float64()
	return fraction
}
