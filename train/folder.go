package train

import (
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/vktrain/vktrain/checkpoint"
)

// Names of the files of a run's folder, beside those of the checkpoint.
const (
	MetricsFile  = "metrics.jsonl"
	SettingsFile = "config.yaml"
	LossPlotFile = "loss.png"
)

// runFiles are the files that a run owns.
var runFiles = []string{MetricsFile, SettingsFile, LossPlotFile, checkpoint.ModelFile, checkpoint.ConfigFile, checkpoint.TokenizerFile}

// pictureName is of a picture of the live window, by the step; picturePattern finds them all.
const (
	pictureName    = "picture-%06d.png"
	picturePattern = "picture-[0-9]*.png"
)

// ErrHasRun is in the chain of errors about a folder that holds a run already.
var ErrHasRun = errors.New("the folder holds a run already")

// Folder is the folder that a run leaves.
type Folder struct {
	Dir     string
	metrics *os.File
	lines   []Metrics
}

// CheckPlace returns an error if dir is no folder and can't be made one, or nothing can be written there. It leaves nothing behind.
func CheckPlace(dir string) error {
	at := filepath.Clean(dir)
	info, err := os.Stat(at)
	for errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		if filepath.Dir(at) == at {
			break
		}
		at = filepath.Dir(at)
		info, err = os.Stat(at)
	}
	switch {
	case err != nil:
		return fmt.Errorf("the run's folder can't be made: %w", err)
	case !info.IsDir():
		return fmt.Errorf("the run's folder %s can't be made: %s is a file: give another folder", dir, at)
	}
	if err := checkpoint.CheckWrite(filepath.Join(at, MetricsFile)); err != nil {
		return fmt.Errorf("the run's folder can't be made: %w", err)
	}
	return nil
}

// CheckFolder is CheckPlace, and returns ErrHasRun if the folder holds a run. One that is not there is well.
func CheckFolder(dir string) error {
	if err := CheckPlace(dir); err != nil {
		return err
	}
	for _, name := range runFiles {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return fmt.Errorf("%s: %w (%s)", dir, ErrHasRun, name)
		}
	}
	return nil
}

// CreateFolder makes a folder for a run, or takes one that is there. If it holds a run, that is ErrHasRun, or with
// overwrite the run's files are removed; others stay.
func CreateFolder(dir string, overwrite bool) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("the run's folder can't be made: %w", err)
	}
	if !overwrite {
		if err := CheckFolder(dir); err != nil {
			return nil, err
		}
	}
	if err := removeRun(dir); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, MetricsFile), os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	return &Folder{Dir: dir, metrics: f}, nil
}

func removeRun(dir string) error {
	files := slices.Clone(runFiles)
	pictures, err := fs.Glob(os.DirFS(dir), picturePattern)
	for _, name := range append(files, pictures...) {
		if e := os.Remove(filepath.Join(dir, name)); err == nil && !errors.Is(e, fs.ErrNotExist) {
			err = e
		}
	}
	return err
}

// FreshFolder makes parent/name-N with the lowest N that is free.
func FreshFolder(parent, name string) (*Folder, error) {
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return nil, fmt.Errorf("the run's folder can't be made: %w", err)
	}
	for n := 1; ; n++ {
		dir := filepath.Join(parent, fmt.Sprintf("%s-%d", name, n))
		err := os.Mkdir(dir, 0o777)
		if err == nil {
			return CreateFolder(dir, false)
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("the run's folder can't be made: %w", err)
		}
	}
}

// WriteConfig writes config.yaml.
func (f *Folder) WriteConfig(cfg Config) error {
	text, err := cfg.YAML()
	if err != nil {
		return err
	}
	return writeWhole(filepath.Join(f.Dir, SettingsFile), text)
}

// Append writes a step's line to metrics.jsonl.
func (f *Folder) Append(m Metrics) error {
	f.lines = append(f.lines, m)
	return WriteMetrics(f.metrics, m)
}

// WritePlot draws loss.png from the lines so far.
func (f *Folder) WritePlot(title string, floor *Floor) error {
	plot, err := PlotLoss(title, f.lines, floor)
	if err != nil {
		return fmt.Errorf("%s: %w", LossPlotFile, err)
	}
	return writeWhole(filepath.Join(f.Dir, LossPlotFile), plot)
}

// WritePicture writes a picture of the run, as a PNG, and returns its path. There is one a step: a later one replaces it.
func (f *Folder) WritePicture(step int, img image.Image) (path string, err error) {
	path = filepath.Join(f.Dir, fmt.Sprintf(pictureName, step))
	return path, checkpoint.WriteFile(path, func(w io.Writer) error { return png.Encode(w, img) })
}

// Close closes metrics.jsonl.
func (f *Folder) Close() error { return f.metrics.Close() }

func writeWhole(path string, data []byte) error {
	return checkpoint.WriteFile(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}
