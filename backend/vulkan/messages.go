//go:build cgo

package vulkan

import (
	"slices"
	"sync"

	"github.com/vktrain/vktrain/backend/vulkan/internal/vkx"
)

// messageLog collects what the validation layer says. The layer speaks on any thread.
type messageLog struct {
	mu       sync.Mutex
	messages []string
}

// ofTheLayer are messages about the layer's own settings, what it needs for them and what they cost, not about what was called. The last says that a kernel
// has so many accesses that the layer's checks of each, in GPU-assisted validation, will be slow to compile: they are made all the same.
var ofTheLayer = []string{"VALIDATION-SETTINGS", "WARNING-Setting-Limit-Adjusted", "GPUAV-Compile-time-general-buffer"}

func (l *messageLog) add(m vkx.Message) {
	if slices.Contains(ofTheLayer, m.ID) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := m.Text
	if m.ID != "" {
		s = m.ID + ": " + s
	}
	if !slices.Contains(l.messages, s) {
		l.messages = append(l.messages, s)
	}
}

// take returns what has come since the last take, as one error.
func (l *messageLog) take() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.messages) == 0 {
		return nil
	}
	err := &ValidationError{Messages: l.messages}
	l.messages = nil
	return err
}
