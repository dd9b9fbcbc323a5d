// Package window shows a run while it trains: the loss, the variance of the hidden state by depth, and the gradients' norms by layer and step. Keys pause it,
// take it step by step, save the picture, and ask for a checkpoint.
//
//	func main() {
//		os.Exit(window.Main(run)) // run is called in another goroutine: the main thread is the windows'
//	}
//
//	w, err := window.Open(window.Options{Title: "nano", Control: control})
//	...                               // w.Add(m) in the Step hook of a run with that control
//	w.Close()
//
// The window needs GLFW and is there in programs that were built with the tag `window` alone; without it Open says so, and the board that it would show can
// still be drawn: [Board].
//
// # Cost
//
// The run's goroutine only leaves numbers behind. Pictures are drawn by the CPU in the window's own thread, at most four a second and in at most a thirtieth
// of the time, and only when there is something new; one is copied to the GPU where it is shown, with a queue of its own.
//
// # The end
//
// Closing the window lets a paused run go on, and does not end it unless Options.Closed does. The window outlives its run, until it is closed. A display server that ends takes the whole program with it, as X does with all its clients.
package window
