// Package report makes what people look at: pages, figures and tables of what runs and experiments wrote. It trains nothing.
package report
