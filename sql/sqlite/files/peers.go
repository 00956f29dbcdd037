package files

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// Peers is the folder beside a database in which processes see each other. A
// node has two files, named for its number:
//
//	<no>.node  locked while the node lives; holds the ledger
//	<no>.wake  written by others when this node should look at the queues
//
// and all share the process lock, which gives the database to one process after
// the other.
type Peers struct {
	*Ledger

	path, dir string // of the database, and the folder
	access    Access
	log       *slog.Logger
	no        int64
	self      *os.File
	lock      *processLock
	watcher   *fsnotify.Watcher
	quit      chan struct{}
	once      sync.Once
	watched   sync.WaitGroup // watch, which uses the files

	mu     sync.Mutex
	peers  map[int64]*peer
	missed bool        // one could not be opened: it is looked for again
	alone  atomic.Bool // no peers
}

type peer struct {
	file, wakeFile *os.File

	seen   time.Time // the last sign of life: when its file was written
	silent int       // beats since
	hung   bool      // it has given none for so long that its work was given away
	taking bool      // its work is being given away
}

// Folder is where the nodes of a database have their files.
func Folder(path string) string { return path + "-nodes" }

// Join makes the files of a node in the folder of a database, without a name:
// others see it when it has one.
func Join(path string, a Access, log *slog.Logger) (*Peers, error) {
	p := &Peers{path: path, dir: Folder(path), access: a, log: log, quit: make(chan struct{}), peers: map[int64]*peer{}}
	p.alone.Store(true)
	if err := p.open(); err != nil {
		p.Abort()
		return nil, err
	}
	return p, nil
}

func (p *Peers) open() (err error) {
	if err := p.access.makeFolder(p.dir); err != nil {
		return err
	}
	if p.lock, err = openProcessLock(p.dir, p.access); err != nil {
		return err
	}
	// Locked before it has its name, so that it is never seen unlocked.
	if p.self, err = os.CreateTemp(p.dir, ".new-*"); err != nil {
		return err
	}
	p.Ledger = &Ledger{file: p.self, log: p.log}
	if err := p.access.own(p.self.Name()); err != nil {
		return err
	}
	if err := lock(p.self); err != nil {
		return err
	}
	if p.watcher, err = fsnotify.NewWatcher(); err != nil {
		return unwatched(err)
	}
	return nil
}

// Name gives the files of this node their names.
func (p *Peers) Name(no int64) error {
	p.no = no
	wakeFile, err := p.access.open(p.file(no, "wake"))
	if err != nil {
		return err
	}
	if err := wakeFile.Close(); err != nil {
		return err
	}
	if err := p.watcher.Add(p.file(no, "wake")); err != nil {
		return unwatched(err)
	}
	return os.Rename(p.self.Name(), p.file(no, "node"))
}

// unwatched keeps a lack of watches apart from a full disk: both are ENOSPC.
func unwatched(err error) error {
	return problem.Wrap(err, problem.Unavailable, "store.watch", "the wake-up file of this node cannot be watched").
		WithHint("raise fs.inotify.max_user_watches or max_user_instances")
}

func (p *Peers) file(no int64, kind string) string {
	return filepath.Join(p.dir, strconv.FormatInt(no, 10)+"."+kind)
}

// Probe says whether a node lives, as far as that can be found out: without
// descriptors nobody is dead. Of a dead one the file is returned locked, or nil
// when there is none.
func (p *Peers) Probe(no int64) (alive bool, f *os.File) {
	f, err := os.OpenFile(p.file(no, "node"), os.O_RDWR, 0)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist), nil
	}
	free, _ := tryLock(f)
	return !free, f
}

// Remove removes the files of a node whose messages are returned.
func (p *Peers) Remove(no int64, f *os.File) {
	p.remove(no, f)
	f.Close()
}

// remove leaves files that have become another's, who has the number now.
func (p *Peers) remove(no int64, f *os.File) {
	if same, there := p.names(no, f); same && there {
		os.Remove(p.file(no, "node"))
		os.Remove(p.file(no, "wake"))
	}
}

// Succeeded reports whether the files with a number have become another's than f is of: of one whose joining was rolled
// back the next has the number.
func (p *Peers) Succeeded(no int64, f *os.File) bool {
	same, there := p.names(no, f)
	return there && !same
}

// names reports whether f is the file with a number, where one is there.
func (p *Peers) names(no int64, f *os.File) (same, there bool) {
	mine, errMine := f.Stat()
	named, err := os.Stat(p.file(no, "node"))
	there = errMine == nil && err == nil
	return there && os.SameFile(mine, named), there
}

// Scan finds the peers, and reports whether there are new ones.
func (p *Peers) Scan() (found bool) {
	names, err := nodeFiles(p.dir)
	if err != nil && !p.missed {
		p.log.Error("sqlite: nodes", "error", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.missed = err != nil
	open := func(name string, how int) *os.File {
		f, err := os.OpenFile(name, how, 0)
		p.missed = p.missed || err != nil && !errors.Is(err, fs.ErrNotExist)
		return f
	}
	for _, name := range names {
		no, err := strconv.ParseInt(strings.TrimSuffix(filepath.Base(name), ".node"), 10, 64)
		if err != nil || no == p.no {
			continue
		}
		other := p.peers[no]
		if other == nil {
			other = &peer{file: open(name, os.O_RDWR)}
		}
		if other.file == nil || other.wakeFile != nil {
			continue
		}
		other.wakeFile = open(p.file(no, "wake"), os.O_WRONLY)       // none: it is on its way out; the lock will tell
		found = found || p.peers[no] == nil || other.wakeFile != nil // else two who notify each other would not end
		p.peers[no] = other
	}
	p.alone.Store(len(p.peers) == 0 && !p.missed)
	return found
}

// nodeFiles says when it cannot look, which filepath.Glob does not.
func nodeFiles(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".node") {
			names = append(names, filepath.Join(dir, e.Name()))
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return names, err
}

// Live counts the nodes that run on the database at a path: their files are
// locked.
func Live(path string) (int, error) {
	names, err := nodeFiles(Folder(path))
	if err != nil {
		return 0, err
	}
	count := 0
	for _, name := range names {
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it has just ended
		}
		if err != nil {
			return 0, err
		}
		if ok, _ := tryLock(f); !ok {
			count++
		}
		f.Close()
	}
	return count, nil
}

// Alone says that no other process has the database open.
func (p *Peers) Alone() bool { return p.alone.Load() }

// Notify makes the peers look at the queues.
func (p *Peers) Notify() {
	if p.alone.Load() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for no, other := range p.peers {
		if other.wakeFile == nil {
			continue
		}
		if _, err := other.wakeFile.WriteAt([]byte{1}, 0); err != nil {
			p.log.Warn("sqlite: notify", "node", no, "error", err)
		}
	}
}

// Turn takes the process lock while there are peers.
func (p *Peers) Turn() (unlock func(), err error) {
	if p.alone.Load() {
		return func() {}, nil
	}
	leave, jams, err := p.lock.enter()
	if err != nil {
		return nil, err
	}
	if jams {
		p.log.Warn("sqlite: a process hangs with the process lock of the database; this one goes past it", "path", p.path, "after", patience)
	}
	return func() {
		if leave == nil {
			return
		}
		if err := leave(); err != nil {
			p.log.Error("sqlite: process lock", "error", err)
		}
	}, nil
}

// Stop ends the watch.
func (p *Peers) Stop() { p.once.Do(func() { close(p.quit) }) }

// Leave removes this node's files and tells the peers, when the watch is over.
// One that is abandoned leaves all as the death of its process would.
func (p *Peers) Leave(abandoned bool) error {
	p.watched.Wait()
	if !abandoned {
		p.unname()
	}
	err := p.close()
	if !abandoned {
		p.Notify()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, other := range p.peers {
		other.file.Close()
		if other.wakeFile != nil {
			other.wakeFile.Close()
		}
	}
	return err
}

// Abort removes the files of a node that does not come to work.
func (p *Peers) Abort() {
	p.unname()
	_ = p.close() // why it does not is what is told
}

func (p *Peers) unname() {
	if p.self != nil {
		p.remove(p.no, p.self)
		os.Remove(p.self.Name()) // when it did not get its name
	}
}

func (p *Peers) close() error {
	var errs []error
	if p.watcher != nil {
		errs = append(errs, p.watcher.Close())
	}
	errs = append(errs, p.lock.close())
	if p.self != nil {
		errs = append(errs, p.self.Close())
	}
	return errors.Join(errs...)
}
