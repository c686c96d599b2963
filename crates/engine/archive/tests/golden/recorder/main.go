// Records what Flux's reader makes of the archives in a file: one verdict each, on standard output.
package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"syscall"
	"unicode/utf8"

	"github.com/fluxcd/pkg/tar"
)

func main() {
	syscall.Umask(0)
	in, err := os.Open(os.Args[1])
	if err != nil {
		panic(err)
	}
	reader, out := bufio.NewReader(in), bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for {
		var size uint32
		if err := binary.Read(reader, binary.LittleEndian, &size); err == io.EOF {
			return
		} else if err != nil {
			panic(err)
		}
		archive := make([]byte, size)
		if _, err := io.ReadFull(reader, archive); err != nil {
			panic(err)
		}
		fmt.Fprintln(out, verdict(archive))
	}
}

func verdict(archive []byte) string {
	dir, err := os.MkdirTemp("", "untar")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	inside := filepath.Join(dir, "in")
	if err := os.Mkdir(inside, 0o700); err != nil {
		panic(err)
	}
	if err := tar.Untar(bytes.NewReader(archive), inside, tar.WithSkipGzip(), tar.WithSkipSymlinks(), tar.WithMaxUntarSize(4<<20)); err != nil {
		return "-"
	}
	files := map[string]fs.FileInfo{}
	names := []string{}
	filepath.Walk(inside, func(path string, info fs.FileInfo, err error) error {
		if err != nil {
			panic(err)
		}
		if path != inside {
			name, _ := filepath.Rel(inside, path)
			files[name] = info
			names = append(names, name)
		}
		return nil
	})
	sort.Strings(names)
	hash := sha256.New()
	for _, name := range names {
		if !utf8.ValidString(name) {
			return "?"
		}
		info := files[name]
		if info.IsDir() {
			fmt.Fprintf(hash, "D %s\n", name)
			continue
		}
		content, err := os.ReadFile(filepath.Join(inside, name))
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(hash, "F %s %v %d\n", name, info.Mode().Perm()&0o111 != 0, len(content))
		hash.Write(content)
	}
	return hex.EncodeToString(hash.Sum(nil))[:8]
}
