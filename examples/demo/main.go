// Program demo shows a crash: it starts a node and the outside world, begins a
// loan approval, and kills the node (SIGKILL) while its HTTP call is under way
// and has already had its effect. A new process goes on; a person approves; the
// timeline is printed, and the outside world counts each effect once.
//
//	go run ./examples/demo
//
// It ends by itself; its exit status is 0 when all of that was so.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/api/client"
)

// patience bounds every wait of the demo.
const patience = 30 * time.Second

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// demo is what one run holds.
type demo struct {
	dir      string
	node     *process
	services *process
	api      *client.Client
}

func run(ctx context.Context) (err error) {
	d := &demo{}
	if d.dir, err = os.MkdirTemp("", "aqueduct-demo-"); err != nil {
		return err
	}
	defer os.RemoveAll(d.dir)
	defer func() { d.node.kill(); d.services.kill() }()
	for _, step := range []func(context.Context) error{d.build, d.world, d.serve, d.story} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func say(format string, args ...any) { fmt.Printf("\n== "+format+"\n", args...) }

func (d *demo) build(ctx context.Context) error {
	say("building the node and the outside world")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", d.dir+string(filepath.Separator), "./cmd/engine-node", "./examples/services")
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

func (d *demo) world(ctx context.Context) (err error) {
	d.services, err = begin(ctx, filepath.Join(d.dir, "services"), "address", "-addr", "127.0.0.1:0")
	return err
}

func (d *demo) serve(ctx context.Context) (err error) {
	d.node, err = begin(ctx, filepath.Join(d.dir, "engine-node"), "url", "serve", "--json", "--listen", "127.0.0.1:0",
		"--store-url", "sqlite://"+filepath.Join(d.dir, "demo.db"), "--watch", "examples", "--log-level", "error")
	if err != nil {
		return err
	}
	d.api, err = client.New(d.node.url, nil)
	return err
}

// story is the loan, from its start to the count of its effects.
func (d *demo) story(ctx context.Context) error {
	say("scoring will take its time, and its answer will come late")
	if err := d.control(ctx, "/control/scoring", `{"slow": "3s", "after": true}`); err != nil {
		return err
	}
	input, _ := json.Marshal(map[string]any{"services": d.services.url, "applicant": "ada", "amount": 25000, "income": 9000}) // plain data
	loan, _, err := d.api.Start(ctx, client.StartRequest{Definition: "examples/loan-approval", BusinessKey: "loan-1", StartKey: "loan-1", Input: input}, 0)
	if err != nil {
		return err
	}
	fmt.Println("started", loan.ID)
	if err := until(ctx, "the call is under way", func() (bool, error) {
		e, err := d.effects(ctx)
		return e.Attempts > 0, err
	}); err != nil {
		return err
	}
	say("the call is under way and has had its effect: SIGKILL")
	d.node.kill()
	if err := d.control(ctx, "/control/scoring", `{}`); err != nil {
		return err
	}
	say("a new process on the same file")
	if err := d.serve(ctx); err != nil {
		return err
	}
	if err := d.approve(ctx, loan.ID); err != nil {
		return err
	}
	return d.conclude(ctx, loan.ID)
}

// approve plays the loan officer, who clicks twice.
func (d *demo) approve(ctx context.Context, instance string) error {
	var task client.Task
	if err := until(ctx, "the officer has a task", func() (bool, error) {
		page, err := d.api.Tasks(ctx, client.TaskQuery{InstanceID: instance, User: "olga", Groups: []string{"loan-officers"}})
		if err != nil || len(page.Items) == 0 {
			return false, err
		}
		task = page.Items[0]
		return true, nil
	}); err != nil {
		return err
	}
	say("olga approves: %s", task.Title)
	if _, err := d.api.Claim(ctx, task.ID, client.ClaimRequest{User: "olga", Groups: []string{"loan-officers"}}); err != nil {
		return err
	}
	answer := client.CompleteRequest{User: "olga", Outcome: "approved"}
	if _, err := d.api.Complete(ctx, task.ID, answer); err != nil {
		return err
	}
	_, err := d.api.Complete(ctx, task.ID, answer)
	fmt.Println("her second click is told:", err)
	if err == nil {
		return errors.New("a task was completed twice")
	}
	return nil
}

// conclude prints the timeline and holds the outside world to its count.
func (d *demo) conclude(ctx context.Context, instance string) error {
	if err := until(ctx, "the loan is completed", func() (bool, error) {
		i, err := d.api.Instance(ctx, instance)
		return i.Status == "completed", err
	}); err != nil {
		return err
	}
	say("the timeline")
	show := exec.CommandContext(ctx, filepath.Join(d.dir, "engine-node"), "show", instance, "--timeline", "--server", d.node.url)
	show.Stdout, show.Stderr = os.Stdout, os.Stderr
	if err := show.Run(); err != nil {
		return err
	}
	e, err := d.effects(ctx)
	if err != nil {
		return err
	}
	say("what the outside world counted")
	for _, k := range e.Keys {
		fmt.Printf("%-14s key %s  attempts %d  effects %d\n", k.Path, k.Key, k.Attempts, k.Effects)
		if k.Effects != 1 {
			return fmt.Errorf("%s had %d effects", k.Path, k.Effects)
		}
	}
	if e.Effects != 2 || e.Attempts < 3 {
		return fmt.Errorf("%d effects in %d attempts: want 2 effects, and one attempt lost in the crash", e.Effects, e.Attempts)
	}
	fmt.Println("each effect happened once, though one was attempted twice")
	return nil
}

// effects is what the outside world tells.
type effects struct {
	Effects, Attempts int
	Keys              []struct {
		Key, Path         string
		Attempts, Effects int
	}
}

func (d *demo) effects(ctx context.Context) (e effects, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.services.url+"/effects", nil)
	if err != nil {
		return e, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return e, err
	}
	defer resp.Body.Close()
	return e, json.NewDecoder(resp.Body).Decode(&e)
}

func (d *demo) control(ctx context.Context, path, body string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, d.services.url+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s: %s", path, resp.Status)
	}
	return nil
}

// until asks again and again whether something is so.
func until(ctx context.Context, what string, so func() (bool, error)) error {
	deadline := time.Now().Add(patience)
	for {
		ok, err := so()
		if ok || err != nil {
			return err
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return fmt.Errorf("%s: not within %s", what, patience)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
