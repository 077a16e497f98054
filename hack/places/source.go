package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// source is what we read of the package. Its fields are strings throughout.
type source struct {
	Airports  []sourceAirport
	Countries []sourceArea
	Regions   []sourceArea
}

type sourceAirport struct {
	Type         string `json:"type"`
	Name         string `json:"name"`
	Lat          string `json:"latitude_deg"`
	Lon          string `json:"longitude_deg"`
	Country      string `json:"iso_country"`
	Region       string `json:"iso_region"`
	Municipality string `json:"municipality"`
	Scheduled    string `json:"scheduled_service"`
	IATA         string `json:"iata_code"`
	Keywords     string `json:"keywords"`
}

type sourceArea struct {
	Code string `json:"code"`
	Name string `json:"name"`
}

func unpack(packed []byte) (source, error) {
	var src source
	want := map[string]any{
		"package/data/airports.json":  &src.Airports,
		"package/data/countries.json": &src.Countries,
		"package/data/regions.json":   &src.Regions,
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return source{}, err
	}
	archive := tar.NewReader(unzipped)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return source{}, err
		}
		into, ok := want[header.Name]
		if !ok {
			continue
		}
		if err := json.NewDecoder(archive).Decode(into); err != nil {
			return source{}, fmt.Errorf("decode %s: %w", header.Name, err)
		}
		delete(want, header.Name)
	}
	if len(want) > 0 {
		return source{}, fmt.Errorf("files are missing: %v", want)
	}
	return src, nil
}

// metroAirports reads the airport codes in the fourth column of the table of metropolitan areas.
func metroAirports(path string) (map[string]bool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	codes := map[string]bool{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		line := lines.Text()
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, "\t")
		if len(fields) != 4 {
			return nil, fmt.Errorf("line %q has %d fields, want 4", line, len(fields))
		}
		for _, code := range strings.Split(fields[3], ",") {
			codes[code] = true
		}
	}
	return codes, lines.Err()
}
