// Image writes a container image of static programs, without a container engine: one layer on nothing, reproducible to
// the byte.
//
//	go run . -out relayops.tar -tag localhost/relayops:dev -arch amd64 manager relay worker relayops
//
// Every argument is a program; it becomes /<its base name>. The archive is what `docker load` and
// `ctr images import` read.
package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// nonroot is the user that distroless images have by that name.
const nonroot = 65532

// epoch is the time of everything in the image: nothing of the day it is built on.
var epoch = time.Unix(0, 0).UTC()

func main() {
	out := flag.String("out", "", "archive to write")
	tag := flag.String("tag", "", "name of the image, such as localhost/relayops:dev")
	arch := flag.String("arch", "amd64", "architecture of the programs: amd64 or arm64")
	certificates := flag.String("certificates", "/etc/ssl/certs/ca-certificates.crt",
		"authorities that TLS trusts, in PEM; empty: none")
	flag.Parse()
	if err := write(*out, *tag, *arch, *certificates, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func write(out, tag, arch, certificates string, programs []string) error {
	if out == "" || tag == "" || len(programs) == 0 {
		return errors.New("usage: image -out FILE -tag NAME PROGRAM…")
	}
	reference, err := name.NewTag(tag)
	if err != nil {
		return fmt.Errorf("-tag: %w", err)
	}
	content, err := layer(programs, certificates)
	if err != nil {
		return err
	}
	image, err := build(content, arch, "/"+filepath.Base(programs[0]))
	if err != nil {
		return err
	}
	// A half-written archive has no name.
	if err := tarball.WriteToFile(out+".new", reference, image); err != nil {
		return fmt.Errorf("write %s: %w", out, err)
	}
	return os.Rename(out+".new", out)
}

func build(content []byte, arch, entrypoint string) (v1.Image, error) {
	made, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	})
	if err != nil {
		return nil, fmt.Errorf("layer: %w", err)
	}
	image, err := mutate.AppendLayers(empty.Image, made)
	if err != nil {
		return nil, fmt.Errorf("image: %w", err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("image: %w", err)
	}
	config = config.DeepCopy()
	config.Architecture, config.OS, config.Created = arch, "linux", v1.Time{Time: epoch}
	config.Config = v1.Config{
		Entrypoint: []string{entrypoint}, User: fmt.Sprintf("%d:%d", nonroot, nonroot), WorkingDir: "/",
		Env:    []string{"PATH=/", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"},
		Labels: map[string]string{"org.opencontainers.image.source": "https://github.com/relayops/relayops"},
	}
	return mutate.ConfigFile(image, config)
}

// layer is the archive of all files, in an order of its own.
func layer(programs []string, certificates string) ([]byte, error) {
	var content bytes.Buffer
	archive := tar.NewWriter(&content)
	directories := []struct {
		name string
		mode int64
	}{{"etc/", 0o755}, {"etc/ssl/", 0o755}, {"etc/ssl/certs/", 0o755}, {"tmp/", 0o1777}}
	for _, directory := range directories {
		err := archive.WriteHeader(&tar.Header{
			Typeflag: tar.TypeDir, Name: directory.name, Mode: directory.mode, ModTime: epoch, Format: tar.FormatPAX,
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", directory.name, err)
		}
	}
	accounts := fmt.Sprintf("root:x:0:0:root:/:/none\nnonroot:x:%d:%d:nonroot:/:/none\n", nonroot, nonroot)
	if err := add(archive, "etc/passwd", 0o644, []byte(accounts)); err != nil {
		return nil, err
	}
	if certificates != "" {
		pem, err := os.ReadFile(certificates)
		if err != nil {
			return nil, fmt.Errorf("authorities (package ca-certificates has them; -certificates= leaves them out): %w", err)
		}
		if err := add(archive, "etc/ssl/certs/ca-certificates.crt", 0o644, pem); err != nil {
			return nil, err
		}
	}
	sorted := slices.Clone(programs)
	slices.Sort(sorted)
	for _, program := range sorted {
		binary, err := os.ReadFile(program)
		if err != nil {
			return nil, fmt.Errorf("program: %w", err)
		}
		if err := add(archive, filepath.Base(program), 0o755, binary); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, fmt.Errorf("close the layer: %w", err)
	}
	return content.Bytes(), nil
}

func add(archive *tar.Writer, name string, mode int64, content []byte) error {
	err := archive.WriteHeader(&tar.Header{
		Name: name, Mode: mode, Size: int64(len(content)), ModTime: epoch, Format: tar.FormatPAX,
	})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if _, err := archive.Write(content); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
