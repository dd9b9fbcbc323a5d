// Package chart draws figures of lines and of heat maps, as SVG, PNG and CSV, through gonum.org/v1/plot.
//
// What can't be drawn is never dropped in silence: a line has a gap there, and a sign at the axis' end (zero and below on a logarithmic axis, not finite
// on any), which the legend explains. The CSV holds every number as it is. Legends are below the curves. Colours and dashes come from [StyleOf], so that
// whoever gives a thing the same number in every figure gets the same look.
package chart
