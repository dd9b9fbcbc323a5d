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

func (l *messageLog) add(m vkx.Message) {
	if m.ID == "VALIDATION-SETTINGS" {
		return // about the names of settings, which change from version to version, not about what was called
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
