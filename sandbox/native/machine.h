/* The machine description that the stub libraries answer from: one "key=value" a line, '#' starts a comment line.
 *
 * The file is named by KILN_STUB_MACHINE. It is read once per process, so a fault injected later is seen by the next
 * process, as a driver's state would be by the next query. Keys: "driver.version", "gpu.count", "gpu.0.uuid", ...
 */
#ifndef KILN_MACHINE_H
#define KILN_MACHINE_H

/* The value of a key, or NULL where the file has none. The text lives as long as the process. */
const char *machine_text(const char *key);

/* The value of "gpu.<index>.<name>", or NULL. */
const char *machine_gpu(unsigned index, const char *name);

/* The value as a number, or the fallback where there is none. */
double machine_number(const char *key, double fallback);
double machine_gpu_number(unsigned index, const char *name, double fallback);

#endif
