package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// restart kills a node under load and measures how long the next one takes
// from the start of its process to its first committed turn.
func restart(ctx context.Context, o *Options) ([]Row, error) {
	if len(o.Self) == 0 {
		return nil, nil
	}
	row := Row{Workload: "restart", N: o.count(10, 2), Note: "milliseconds from process start to first committed turn"}
	dir, remove, err := o.dir("restart")
	if err != nil {
		return nil, err
	}
	defer remove()
	var latencies []time.Duration
	begun := time.Now()
	for i := range row.N + 1 {
		d, err := o.killedAfterProgress(ctx, dir)
		if err != nil {
			return nil, err
		}
		if i > 0 { // the first made the database
			latencies = append(latencies, d)
		}
	}
	row.Seconds, row.Completed = time.Since(begun).Seconds(), len(latencies)
	row.percentiles(latencies)
	return []Row{row}, nil
}

// progress is what a child prints after its first committed turn.
type progress struct {
	FirstTurn time.Time `json:"firstTurn"`
}

// killedAfterProgress runs a child until it has worked for a moment, kills it,
// and returns how long its first turn took.
func (o *Options) killedAfterProgress(ctx context.Context, dir string) (time.Duration, error) {
	cmd := exec.CommandContext(ctx, o.Self[0], append(o.Self[1:], dir)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	lines := bufio.NewScanner(out)
	var p progress
	if !lines.Scan() || json.Unmarshal(lines.Bytes(), &p) != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return 0, fmt.Errorf("the child made no progress")
	}
	time.Sleep(200 * time.Millisecond) // leave it work under way
	err = cmd.Process.Kill()
	_ = cmd.Wait() // ends by the kill
	return p.FirstTurn.Sub(begun), err
}

// Child is the node that restart kills: it resumes what it finds, adds load,
// and tells of its first turn. It never returns on its own.
func Child(ctx context.Context, o Options, dir string, out io.Writer) error {
	n, err := o.begin(ctx, dir, callDocument("steps-5", 5))
	if err != nil {
		return err
	}
	if err := json.NewEncoder(out).Encode(progress{FirstTurn: time.Now()}); err != nil {
		return err
	}
	seed := time.Now().UnixNano()
	return each(1<<30, callers, func(i int) error {
		done, err := n.launch(ctx, "steps-5", fmt.Sprintf("r-%d-%d", seed, i), map[string]any{"n": 1})
		if err != nil {
			return err
		}
		_, err = within(ctx, done)
		return err
	})
}
