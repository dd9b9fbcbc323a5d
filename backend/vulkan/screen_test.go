//go:build cgo

package vulkan

import (
	"errors"
	"image"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend/vulkan/internal/vkx"
)

// What a window shows, how it is resized and closed, is tested with one: in report/window.

func TestPackPixels(t *testing.T) {
	img := image.NewRGBA(image.Rect(0, 0, 5, 3))
	for i := range img.Pix {
		img.Pix[i] = byte(i)
	}
	part := img.SubImage(image.Rect(1, 1, 3, 3)).(*image.RGBA) // its rows do not touch
	dst := make([]byte, 16)
	packPixels(dst, part, 0)
	require.Equal(t, []byte{24, 25, 26, 27, 28, 29, 30, 31, 44, 45, 46, 47, 48, 49, 50, 51}, dst)
	packPixels(dst, part, 2)
	require.Equal(t, []byte{26, 25, 24, 27, 30, 29, 28, 31, 46, 45, 44, 47, 50, 49, 48, 51}, dst)
}

func TestSwapchainChoices(t *testing.T) {
	least, most := vkx.Extent{Width: 1, Height: 2}, vkx.Extent{Width: 100, Height: 50}
	require.Equal(t, vkx.Extent{Width: 100, Height: 2}, clampExtent(vkx.Extent{Width: 300, Height: 1}, least, most))
	require.Equal(t, vkx.Extent{}, clampExtent(vkx.Extent{Width: 0, Height: 7}, least, most), "minimised")
	require.EqualValues(t, 1, opaque(0b1001))
	require.EqualValues(t, 8, opaque(0b1000))
	require.EqualValues(t, 2, opaque(0b0110))
}

// A surface that can't be made is told of, and what was made before it is freed.
func TestScreenWithoutASurface(t *testing.T) {
	openTest(t, Options{}) // there is Vulkan
	gone := errors.New("no window")
	asked := 0
	_, err := OpenScreen(ScreenOptions{Surface: func(instance any) (uintptr, error) {
		asked++
		require.NotNil(t, instance)
		return 0, gone
	}})
	require.ErrorIs(t, err, gone)
	require.ErrorIs(t, err, ErrNoScreen)
	require.Equal(t, 1, asked)
	_, err = OpenScreen(ScreenOptions{Extensions: []string{"VK_KHR_no_such_thing"}})
	require.ErrorContains(t, err, "extension not present")
}
