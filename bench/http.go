package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// httpCalls is how many requests a workflow of http-steps makes.
const httpCalls = 5

// overHTTP: a node in a process of its own, asked by its API, whose workflows call a
// server of this process. The baseline has the same requests and no engine: a bare server,
// in a process of its own too, that makes the calls itself before it answers.
func overHTTP(ctx context.Context, o *Options) ([]Row, error) {
	called, stop, err := answering(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()
	dir, remove, err := o.dir("http")
	if err != nil {
		return nil, err
	}
	defer remove()
	bare, err := o.bare(ctx, called)
	if err != nil {
		return nil, err
	}
	var rows []Row
	err = o.asChild(ctx, o.Node(dir), func(at *server) error {
		for _, d := range []string{
			document("park", parkTasks), httpDocument("http-1", 1, called), httpDocument("http-5", httpCalls, called),
		} {
			if _, err := at.post(ctx, "/v1/definitions", "application/yaml", []byte(d)); err != nil {
				return err
			}
		}
		rows, err = o.ask(ctx, at, bare)
		return err
	})
	return rows, err
}

// bareRates are what HTTP alone allows on this machine.
type bareRates struct{ one, calls Row }

// ask measures the rows of overHTTP, one after another.
func (o *Options) ask(ctx context.Context, at *server, bare bareRates) ([]Row, error) {
	ids := make([]string, o.count(10_000, 100))
	one := make([]string, o.count(1_000, 20))
	begin := func(list []string) func(int) error {
		return func(i int) error {
			list[i] = newID()
			return at.start(ctx, "park", list[i], "")
		}
	}
	signal := func(list []string) func(int) error {
		return func(i int) error {
			_, err := at.post(ctx, "/v1/instances/"+list[i]+"/signals", "application/json", []byte(`{"type":"go","data":{"ok":true}}`))
			return err
		}
	}
	wait := func(name string) func(int) error {
		return func(int) error { return at.start(ctx, name, newID(), "30s") }
	}
	var rows []Row
	for _, x := range []struct {
		name  string
		n, at int
		do    func(int) error
		bare  Row
	}{
		{name: "http-start", n: len(ids), at: callers, do: begin(ids), bare: bare.one},
		{name: "http-signal", n: len(ids), at: callers, do: signal(ids), bare: bare.one},
		{n: len(one), at: callers, do: begin(one)},
		{name: "http-signal-1", n: len(one), at: 1, do: signal(one)},
		{name: "http-wait-1", n: len(one), at: 1, do: wait("http-1")},
		{name: "http-steps", n: o.count(3_000, 50), at: callers, do: wait("http-5"), bare: bare.calls},
	} {
		row, err := measured(x.name, x.n, x.at, at.cpu(ctx), x.do)
		if err != nil {
			return rows, fmt.Errorf("%s: %w", x.name, err)
		}
		if row.BaselinePerSecond = x.bare.RatePerSecond; x.bare.RatePerSecond > 0 {
			row.Note += fmt.Sprintf("; HTTP without an engine: %.0f/s, p50 %.2f ms", x.bare.RatePerSecond, x.bare.P50Ms)
		}
		if x.name != "" { // else it makes something ready
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// httpDocument calls an address so many times, one after another.
func httpDocument(name string, calls int, address string) string {
	tasks := ""
	for i := range calls {
		tasks += fmt.Sprintf("  - step%d: {call: http, with: {method: post, endpoint: '%s', body: {n: %d}}}\n", i+1, address, i+1)
	}
	return document(name, tasks)
}

// measured calls f n times from so many goroutines; cpu is what the process that is asked
// has taken of processors so far, in seconds.
func measured(name string, n, callers int, cpu func() (float64, error), f func(i int) error) (Row, error) {
	row := Row{Workload: name, N: n}
	var mu sync.Mutex
	latencies := make([]time.Duration, 0, n)
	before, err := cpu()
	if err != nil {
		return row, err
	}
	begun := time.Now()
	err = each(n, callers, func(i int) error {
		sent := time.Now()
		err := f(i)
		mu.Lock()
		latencies = append(latencies, time.Since(sent))
		mu.Unlock()
		return err
	})
	row.Seconds, row.Completed = time.Since(begun).Seconds(), len(latencies)
	row.RatePerSecond = float64(row.Completed) / row.Seconds
	row.percentiles(latencies)
	if err != nil {
		return row, err
	}
	after, err := cpu()
	row.CPUMicros = (after - before) * 1e6 / float64(max(row.Completed, 1))
	row.Note = fmt.Sprintf("%d callers; %.0f us of CPU each", callers, row.CPUMicros)
	return row, err
}

// ownCPU is what this process has taken of processors, in seconds.
func ownCPU() (float64, error) {
	var u syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9, err
}

// server is a process that is asked by HTTP.
type server struct {
	url    string
	client *http.Client
}

// post sends a body; an answer that is no success is an error.
func (s *server) post(ctx context.Context, path, media string, body []byte) ([]byte, error) {
	return s.do(ctx, http.MethodPost, path, media, body)
}

func (s *server) do(ctx context.Context, method, path, media string, body []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", media)
	a, err := s.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err == nil && a.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: %s: %s", method, path, a.Status, text)
	}
	return text, err
}

// start begins an instance; with a wait it must have completed when the answer comes.
func (s *server) start(ctx context.Context, name, id, wait string) error {
	path := "/v1/instances"
	if wait != "" {
		path += "?wait=" + wait
	}
	text, err := s.post(ctx, path, "application/json", fmt.Appendf(nil, `{"definition":"bench/%s","version":"1.0.0","instanceId":%q,"input":{"n":1}}`, name, id))
	if err != nil || wait == "" {
		return err
	}
	var is struct {
		Status string `json:"status"`
	}
	if err = json.Unmarshal(text, &is); err == nil && is.Status != "completed" {
		err = fmt.Errorf("instance %s is %s after %s", id, is.Status, wait)
	}
	return err
}

// cpu asks a node what it has taken of processors.
func (s *server) cpu(ctx context.Context) func() (float64, error) {
	return func() (float64, error) {
		text, err := s.do(ctx, http.MethodGet, "/metrics", "", nil)
		if err != nil {
			return 0, err
		}
		const name = "process_cpu_seconds_total "
		for line := range strings.Lines(string(text)) {
			if value, ok := strings.CutPrefix(line, name); ok {
				return strconv.ParseFloat(strings.TrimSpace(value), 64)
			}
		}
		return 0, fmt.Errorf("the node does not say %s", name)
	}
}

// pooled is a client that keeps its connections, so that each caller has one.
func pooled() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers * 4}}
}

// asChild runs a command that prints one line of JSON with its url, and ends it after f.
func (o *Options) asChild(ctx context.Context, args []string, f func(*server) error) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	var ready struct {
		URL string `json:"url"`
	}
	lines := bufio.NewScanner(out)
	err = fmt.Errorf("%s did not say where it listens", strings.Join(args, " "))
	if lines.Scan() && json.Unmarshal(lines.Bytes(), &ready) == nil && ready.URL != "" {
		client := pooled()
		err = f(&server{ready.URL, client})
		client.CloseIdleConnections()
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if waitErr := cmd.Wait(); err == nil {
		err = waitErr
	}
	return err
}

// answering serves, in this process, what workflows call.
func answering(ctx context.Context) (address string, stop func(), err error) {
	return serving(ctx, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"ok":true}`)
	})
}

func serving(ctx context.Context, h http.HandlerFunc) (address string, stop func(), err error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l) // ends by Close
	}()
	return "http://" + l.Addr().String(), func() { _ = s.Close(); <-done }, nil
}

// Bare is a server without an engine: it makes as many calls to an address as the path
// says, and answers. It says where it listens, and ends with ctx.
func Bare(ctx context.Context, called string, out io.Writer) error {
	to := &server{called, pooled()}
	address, stop, err := serving(ctx, func(w http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		calls, _ := strconv.Atoi(strings.Trim(r.URL.Path, "/"))
		for i := 0; i < calls && err == nil; i++ {
			_, err = to.post(r.Context(), "", "application/json", []byte(`{"n":1}`))
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"status":"completed"}`)
	})
	if err != nil {
		return err
	}
	defer stop()
	if err := json.NewEncoder(out).Encode(map[string]string{"url": address}); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// bare measures what HTTP alone allows: one request, and one with the calls of a workflow.
func (o *Options) bare(ctx context.Context, called string) (rates bareRates, err error) {
	err = o.asChild(ctx, append(o.Bare, called), func(at *server) error {
		ask := func(path string) func(int) error {
			return func(int) error {
				_, err := at.post(ctx, path, "application/json", []byte(`{"n":1}`))
				return err
			}
		}
		var err error
		if rates.one, err = measured("bare", o.count(20_000, 100), callers, ownCPU, ask("/0")); err == nil {
			rates.calls, err = measured("bare", o.count(5_000, 50), callers, ownCPU, ask("/"+strconv.Itoa(httpCalls)))
		}
		return err
	})
	return rates, err
}
