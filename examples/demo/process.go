package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// process is a program of ours that prints where it listens.
type process struct {
	cmd *exec.Cmd
	url string
}

// begin starts a program and reads its address from the field of the JSON line
// that it prints when it is ready.
func begin(ctx context.Context, program, field string, args ...string) (*process, error) {
	p := &process{cmd: exec.CommandContext(ctx, program, args...)}
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	var said map[string]string
	if err != nil || json.Unmarshal(line, &said) != nil || said[field] == "" {
		p.kill()
		return nil, fmt.Errorf("%s did not say where it listens: %q", filepath.Base(program), line)
	}
	p.url = said[field]
	fmt.Println(filepath.Base(program), "at", p.url)
	return p, nil
}

// kill ends the process as a power switch would. A nil process is none.
func (p *process) kill() {
	if p == nil || p.cmd.ProcessState != nil {
		return
	}
	_ = p.cmd.Process.Kill() // it may have ended by itself
	_ = p.cmd.Wait()         // by the kill
}
