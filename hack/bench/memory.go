package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/relayops/relayops/hack/bench/figures"
	"github.com/relayops/relayops/hack/bench/load"
	"github.com/relayops/relayops/hack/bench/rig"
)

// memoryBar is what relay and worker may have resident, each, in MiB.
const memoryBar = 64

// memory runs relay and worker under a steady load, and looks at what they have resident: several times a second, and
// at the kernel's own high-water mark in the end.
func (b *bench) memory(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, trialTimeout+b.plan.memoryFor)
	defer cancel()
	stream, err := b.rig.Reset(ctx)
	if err != nil {
		return err
	}
	processes, err := b.relayAndWorker(ctx, stream)
	if err != nil {
		return err
	}
	defer func() {
		for _, process := range processes {
			err = errors.Join(err, process.Stop())
		}
	}()
	events := int(b.plan.memoryRate * b.plan.memoryFor.Seconds())
	producer, stop, err := b.producer(ctx, events, coalesced)
	if err != nil {
		return err
	}
	defer stop()
	began := time.Now()
	loop := load.OpenLoop{
		Rate: b.plan.memoryRate, Events: events, Producers: producers, Seed: 2, Commit: producer.Commit,
	}
	produced := make(chan error, 1)
	go func() {
		_, err := loop.Run(ctx)
		produced <- err
	}()
	resident, err := sampleMemory(processes, produced)
	if err != nil {
		return err
	}
	b.report.Add("memory/rate", float64(events)/time.Since(began).Seconds(), "events/s", nil)
	if _, err := b.executionStarts(ctx, processes[1], events); err != nil {
		return err
	}
	b.report.Add("memory/executions", float64(events)/time.Since(began).Seconds(), "executions/s", nil)
	for i, process := range processes {
		m, err := rig.MemoryOf(process.PID())
		if err != nil {
			return err
		}
		name := "memory/" + process.Name
		b.report.Add(name+"/resident-median", resident[i].Median(), "MiB", nil)
		b.report.Add(name+"/resident-peak", mebibytes(m.Peak), "MiB", figures.AtMost(memoryBar))
	}
	return nil
}

// sampleMemory gives the processes' resident memory in MiB, every 200 ms until the producers are done.
func sampleMemory(processes []*rig.Process, produced <-chan error) ([]figures.Series, error) {
	resident := make([]figures.Series, len(processes))
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-produced:
			return resident, err
		case <-tick.C:
		}
		for i, process := range processes {
			m, err := rig.MemoryOf(process.PID())
			if err != nil {
				return nil, fmt.Errorf("%s: %w: %s", process.Name, err, process.LogTail())
			}
			resident[i] = append(resident[i], mebibytes(m.Resident))
		}
	}
}
