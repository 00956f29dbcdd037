package main

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/aqueduct-engine/aqueduct/api"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// Limits of a watched folder.
const (
	watchFolders  = 1_000                  // in it
	watchQuiet    = 150 * time.Millisecond // without a change before files are read
	watchLook     = time.Second            // between two looks at what the root leads to
	watchAgain    = time.Second            // until what could not be published for now is tried again; twice as long each time
	watchAgainMax = time.Minute
)

// watcher publishes the definitions in a folder as they change.
type watcher struct {
	given     string      // as the settings name it: links in it may lead elsewhere later
	root      string      // what it leads to
	top       fs.FileInfo // of root; nil = it is watched no more
	full      bool        // some folders were left out
	publisher api.Publisher
	log       *slog.Logger
	events    *fsnotify.Watcher
	published map[string]string // file -> name of what it defines
	refused   map[string]bool   // files of policies that were not published: the lifecycle may come later
	later     map[string]bool   // files that could not be published for now
	told      map[string]bool   // what is not taken, and was told
}

// watch begins to watch a folder and publishes what is in it. A definition
// that is wrong is reported and does not hold up the others.
func watch(ctx context.Context, root string, p api.Publisher, log *slog.Logger) (*watcher, error) {
	events, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, problem.Wrap(err, problem.Unavailable, "watch.failed", "folder %s cannot be watched", root)
	}
	w := &watcher{given: root, publisher: p, log: log, events: events, published: map[string]string{}, refused: map[string]bool{}, later: map[string]bool{}, told: map[string]bool{}}
	if info, err := os.Stat(root); err != nil || !info.IsDir() {
		w.close()
		return nil, problem.New(problem.NotFound, "watch.missing", "there is no folder %s", root)
	}
	files, err := w.settle()
	if err != nil {
		w.close()
		return nil, problem.Wrap(err, problem.Unavailable, "watch.failed", "folder %s cannot be watched", root)
	}
	w.publish(ctx, files)
	return w, nil
}

func (w *watcher) close() { _ = w.events.Close() }

// settle watches what the root leads to now, and returns the files there. The system
// watches a folder, and not the names that lead to it.
func (w *watcher) settle() ([]string, error) {
	root, err := filepath.EvalSymlinks(w.given)
	if err != nil {
		return nil, err
	}
	top, err := os.Stat(root)
	if err != nil {
		return nil, err
	}
	for _, folder := range w.events.WatchList() {
		_ = w.events.Remove(folder) // one that is gone is not watched any more
	}
	clear(w.refused)
	clear(w.later)
	w.root, w.top, w.full = root, nil, false
	files, err := w.add(root)
	if err == nil {
		w.top = top
	}
	return files, err
}

// moved has another folder watched where the root leads there now, as when a deployment
// switches a link, and returns the files there; nil = it is the same.
func (w *watcher) moved() []string {
	if now, err := os.Stat(w.given); err == nil && w.top != nil && os.SameFile(now, w.top) {
		return nil
	}
	files, err := w.settle()
	switch {
	case err == nil:
		delete(w.told, w.given)
		w.log.Info("the watched folder is another one now", "folder", w.given, "leads to", w.root)
	case w.once(w.given): // what it has now is published, but not each time that it is tried again
		w.log.Warn("the watched folder cannot be watched for now", "folder", w.given, "error", err)
	default:
		return nil
	}
	return files
}

// more watches what was left out, where folders that are gone have made room for it, and
// returns the files that there are.
func (w *watcher) more() []string {
	if !w.full || len(w.events.WatchList()) >= watchFolders {
		return nil
	}
	w.full = false
	files, err := w.add(w.root)
	if err != nil {
		w.log.Warn("a watched folder cannot be watched for now", "error", err)
	}
	return files
}

// once reports whether what is not taken was not told yet.
func (w *watcher) once(path string) bool {
	told := w.told[path]
	w.told[path] = true
	return !told
}

// add watches a folder with all below it, and returns the files there.
func (w *watcher) add(root string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			w.log.Warn("a watched file cannot be read", "file", path, "error", err)
			return nil
		case !d.IsDir():
			files = append(files, path)
			return nil
		case path != root && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case len(w.events.WatchList()) >= watchFolders:
			if !w.full {
				w.log.Warn("the watched folder has too many folders; the rest is not watched", "limit", watchFolders, "first", path)
			}
			w.full = true
			return filepath.SkipDir
		}
		return w.events.Add(path)
	})
	return files, err
}

// run publishes changed files when the folder has been quiet for a moment, so
// that a file is not read while its editor writes it.
func (w *watcher) run(ctx context.Context) error {
	changed := map[string]bool{}
	quiet := time.NewTimer(time.Hour)
	defer quiet.Stop()
	again, pause := time.NewTimer(w.pause(0)), watchAgain
	defer again.Stop()
	look := time.NewTicker(watchLook)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case e, ok := <-w.events.Events:
			if !ok {
				return nil
			}
			if e.Name == w.root && (e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename)) {
				w.top = nil // one that is made in its place may look the same
			}
			if !e.Has(fsnotify.Create) && !e.Has(fsnotify.Write) && !e.Has(fsnotify.Rename) {
				continue
			}
			changed[e.Name] = true
			quiet.Reset(watchQuiet)
		case err := <-w.events.Errors:
			w.log.Warn("changes of the watched folder may have been missed", "error", err)
		case <-look.C:
			for _, f := range w.more() {
				changed[f] = true
				quiet.Reset(watchQuiet)
			}
			if files := w.moved(); len(files) > 0 {
				clear(changed) // they are where it led before
				for _, f := range files {
					changed[f] = true
				}
				quiet.Reset(watchQuiet)
			}
		case <-quiet.C:
			w.publish(ctx, w.expand(changed))
			clear(changed)
			again.Reset(w.pause(0))
			pause = watchAgain
		case <-again.C:
			files := slices.Sorted(maps.Keys(w.later))
			clear(w.later) // also of those that are gone
			w.publish(ctx, files)
			pause = min(2*pause, watchAgainMax)
			again.Reset(w.pause(pause))
		}
	}
}

// pause is how long nothing is tried again: of nothing for ever.
func (w *watcher) pause(d time.Duration) time.Duration {
	if len(w.later) == 0 {
		return 1<<63 - 1
	}
	return max(d, watchAgain)
}

// expand replaces new folders by the files in them, and a link to a folder by the files beside
// it, which may be links through it: so Kubernetes changes all files of a ConfigMap at once.
func (w *watcher) expand(changed map[string]bool) []string {
	var files []string
	for path := range changed {
		info, err := os.Stat(path)
		if err != nil {
			continue // gone again
		}
		if !info.IsDir() {
			files = append(files, path)
			continue
		}
		if link, err := os.Lstat(path); err == nil && link.Mode()&fs.ModeSymlink != 0 {
			beside, err := os.ReadDir(filepath.Dir(path))
			if err != nil {
				w.log.Warn("a watched folder cannot be read", "folder", filepath.Dir(path), "error", err)
			}
			for _, f := range beside {
				if !f.IsDir() {
					files = append(files, filepath.Join(filepath.Dir(path), f.Name()))
				}
			}
			continue
		}
		if strings.HasPrefix(filepath.Base(path), ".") {
			continue
		}
		below, err := w.add(path)
		if err != nil {
			w.log.Warn("a new folder cannot be watched", "folder", path, "error", err)
		}
		files = append(files, below...)
	}
	slices.Sort(files)
	return slices.Compact(files)
}

func (w *watcher) publish(ctx context.Context, files []string) {
	lifecycle := false
	for _, d := range w.documents(files) {
		lifecycle = w.publishOne(ctx, d) || lifecycle
	}
	if !lifecycle || len(w.refused) == 0 {
		return
	}
	for _, d := range w.documents(slices.Sorted(maps.Keys(w.refused))) {
		w.publishOne(ctx, d)
	}
}

// publishOne publishes a document, and reports whether a lifecycle has come with it.
func (w *watcher) publishOne(ctx context.Context, d definition.Document) (lifecycle bool) {
	file := d.File
	r, created, err := w.publisher.Publish(ctx, file, d.Source)
	if delete(w.refused, file); err != nil && policyKey.in(d.Source) {
		w.refused[file] = true
	}
	var p *problem.Error
	known := errors.As(err, &p)
	if delete(w.later, file); err != nil && (!known || p.Kind == problem.Unavailable) {
		w.later[file] = true
	}
	switch {
	case known:
		w.log.Error("definition is not published", "file", file, "code", p.Code, "problem", p.Error(), "tried again", w.later[file])
	case err != nil:
		w.log.Error("definition is not published", "file", file, "error", err)
	default:
		if r.Kind == openworkflow.Kind { // a lifecycle begins with an event, which only its reader knows
			w.published[file] = r.Name
		}
		for _, p := range r.Warnings {
			w.log.Warn("definition may not be what is meant", "file", file, "code", p.Code, "warning", p.String())
		}
		if created {
			w.log.Info("definition is published", "file", file, "definition", r.Name+"@"+r.Version)
		}
		return created && r.Kind == "lifecycle"
	}
	return false
}

// documents are the definitions among files, and behind them policies: what lies over a
// lifecycle needs it to be there.
func (w *watcher) documents(files []string) []definition.Document {
	var definitions, policies []definition.Document
	for _, file := range files {
		source, ok := w.definition(file)
		switch {
		case ok && policyKey.in(source):
			policies = append(policies, definition.Document{File: file, Source: source})
		case ok:
			definitions = append(definitions, definition.Document{File: file, Source: source})
		}
	}
	return append(definitions, policies...)
}

// keys are those that stand at the top of a document of some kind.
type keys struct {
	names   []string
	written *regexp.Regexp // how they stand there, also where the rest is broken
}

// definitionKey is how a definition is told from any other YAML or JSON, and policyKey
// how a policy is.
var definitionKey, policyKey = keysOf("document", "lifecycle", "policy"), keysOf("policy")

func keysOf(names ...string) keys {
	return keys{names, regexp.MustCompile(strings.ReplaceAll(`(?m)^\x{FEFF}?(KEY)[ \t]*:|^\x{FEFF}?[ \t]*["'](KEY)["'][ \t]*:|^\x{FEFF}?\s*\{\s*["']?(KEY)["']?\s*:`, "KEY", strings.Join(names, "|")))}
}

// in reports whether one stands at the top of a source. JSON may have it anywhere in its one line, or the
// same word further down.
func (k keys) in(source []byte) bool {
	var top map[string]jsontext.Value
	if jsonv2.Unmarshal(bytes.TrimPrefix(source, []byte("\uFEFF")), &top) != nil {
		return k.written.Match(source)
	}
	return slices.ContainsFunc(k.names, func(name string) bool { return top[name] != nil })
}

// misnamed is how a file begins that is a definition but for its name: prose, scripts and
// code may have the words of one further down.
var misnamed = regexp.MustCompile(`\A\x{FEFF}?(?:[ \t]*(?:#.*|---.*)?\r?\n)*\s*\{?\s*["']?(?:document|lifecycle|policy)["']?[ \t]*:`)

// suffixes are those of definitions. Backups have those of copies that an editor or a tool leaves.
var suffixes, backups = []string{".yaml", ".yml", ".json"}, []string{".bak", ".orig", ".rej", ".old", ".save", ".swp", ".tmp"}

// definition reads a file that looks like a definition. It tells once of one that does, and
// is not taken.
func (w *watcher) definition(file string) ([]byte, bool) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, false
	}
	name, suffix := filepath.Base(file), filepath.Ext(file)
	taken := slices.Contains(suffixes, suffix)
	switch hidden := strings.HasPrefix(name, "."); {
	case info.IsDir():
		if !hidden && w.once(file) {
			w.log.Warn("a link to a folder is not followed in a watched folder", "link", file)
		}
		return nil, false
	case !info.Mode().IsRegular():
		return nil, false
	case !taken && (hidden || strings.HasPrefix(name, "#") || strings.HasSuffix(name, "~") || slices.Contains(backups, suffix)):
		return nil, false
	case info.Size() > api.MaxDefinitionBytes:
		if taken {
			w.log.Warn("a watched file is too large for a definition", "file", file, "limit", api.MaxDefinitionBytes)
		}
		return nil, false
	}
	source, err := os.ReadFile(file)
	switch {
	case err != nil && taken:
		w.log.Warn("a watched file cannot be read", "file", file, "error", err)
	case err != nil:
	case taken:
		return source, definitionKey.in(source)
	case misnamed.Match(source) && w.once(file):
		w.log.Warn("a watched file looks like a definition, and is not taken for its name", "file", file, "names end in", strings.Join(suffixes, ", "))
	}
	return nil, false
}

// suggestions are commands that start what was found, with the input that lies
// beside it, and show what came of it.
func (w *watcher) suggestions() []string {
	var all, events []string
	for file, name := range w.published {
		input := filepath.Join(filepath.Dir(file), "input.json")
		if exists(input) {
			all = append(all, "start "+name+" --id "+firstID(name)+" --input @"+input)
		}
		if event := filepath.Join(filepath.Dir(file), "event.json"); exists(event) {
			events = append(events, "event "+event)
		}
	}
	slices.Sort(all)
	slices.Sort(events)
	if len(all) > 0 {
		name := strings.Fields(all[0])[1]
		all = append(all, "show "+firstID(name)+" --timeline")
	}
	all = append(all, events...)
	return all
}

// firstID is an id for the first instance that somebody tries out.
func firstID(name string) string { return name[strings.LastIndexByte(name, '/')+1:] + "-1" }

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
