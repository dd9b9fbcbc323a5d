// Package bench measures how fast a device trains, beside what the machine can do.
//
// Machines are shared and drift, so what is compared is measured in turns within one process: step for step, repeat for repeat. Times are
// medians, with the least beside them.
package bench
