package bench

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// flushes is how often the disk of a folder was told to make durable what it has, by any
// process, since the host began; -1 = the host does not say. Linux counts them for each disk
// (Documentation/block/stat.rst): each fsync of a file is one, where nobody else had the
// same disk flushed at that moment.
func flushes(dir string) int64 {
	info, err := os.Stat(dir)
	if err != nil {
		return -1
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return -1
	}
	dev := uint64(st.Dev)
	major, minor := dev>>8&0xfff|dev>>32&^0xfff, dev&0xff|dev>>12&^0xff
	of := fmt.Sprintf("/sys/dev/block/%d:%d/", major, minor)
	if _, err := os.Stat(of + "partition"); err == nil {
		of += "../" // flushes are of the whole disk
	}
	raw, err := os.ReadFile(of + "stat")
	if err != nil {
		return -1
	}
	const flushIOs = 15 // reads, writes and discards have four fields each before it, and three more
	fields := strings.Fields(string(raw))
	if len(fields) <= flushIOs {
		return -1
	}
	n, err := strconv.ParseInt(fields[flushIOs], 10, 64)
	if err != nil {
		return -1
	}
	return n
}
