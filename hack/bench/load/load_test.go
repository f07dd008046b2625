package load

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"
)

func TestPayloadIsJSONOfItsSize(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for _, size := range []int{120, 1000, 1024, 4097} {
		payload := Payload(7, size, random)
		if len(payload) != size || !json.Valid(payload) {
			t.Errorf("size %d: found %d bytes, valid JSON: %v", size, len(payload), json.Valid(payload))
		}
	}
}

func TestScheduleKeepsItsRate(t *testing.T) {
	at := OpenLoop{Rate: 200, Events: 20000, Seed: 3}.schedule()
	if took := at[len(at)-1].Seconds(); took < 95 || took > 105 {
		t.Errorf("20000 events at 200/s: found %.1f s, want about 100 s", took)
	}
	for n := 1; n < len(at); n++ {
		if at[n] < at[n-1] {
			t.Fatalf("event %d is before its predecessor", n)
		}
	}
}

// A stalled system must not slow the schedule down: that would hide the stall from the percentiles.
func TestAStallIsMeasuredForEveryEventThatWaitedForIt(t *testing.T) {
	var calls atomic.Int64
	loop := OpenLoop{Rate: 1000, Events: 200, Producers: 1, Seed: 1, Commit: func(context.Context, int) (time.Time, error) {
		if calls.Add(1) == 1 {
			time.Sleep(150 * time.Millisecond)
		}
		return time.Now(), nil
	}}
	times, err := loop.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	late := 0
	for _, event := range times {
		if event.Done.Sub(event.Scheduled) > 40*time.Millisecond {
			late++
		}
	}
	if late < 50 {
		t.Errorf("found %d late events, want most of the 150 that were due during the stall", late)
	}
}

func TestTheLoopEndsWithTheFirstError(t *testing.T) {
	broken := errors.New("broken")
	loop := OpenLoop{Rate: 1000, Events: 100000, Producers: 2, Commit: func(_ context.Context, n int) (time.Time, error) {
		if n == 3 {
			return time.Time{}, broken
		}
		return time.Now(), nil
	}}
	if _, err := loop.Run(t.Context()); !errors.Is(err, broken) {
		t.Errorf("found %v, want the producer's error", err)
	}
}
