/* See machine.h. */
#include "machine.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    char *key;
    char *value;
};

static struct entry *entries;
static size_t count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void) {
    const char *path = getenv("KILN_STUB_MACHINE");
    FILE *file = path ? fopen(path, "r") : NULL;
    char *line = NULL;
    size_t size = 0, room = 0;
    if (!file) return;
    while (getline(&line, &size, file) > 0) {
        char *equals = strchr(line, '=');
        if (line[0] == '#' || !equals) continue;
        *equals = '\0';
        equals[1 + strcspn(equals + 1, "\r\n")] = '\0';
        if (count == room) {
            struct entry *more = realloc(entries, (room = room ? room * 2 : 256) * sizeof *entries);
            if (!more) break;
            entries = more;
        }
        entries[count].key = strdup(line);
        entries[count].value = strdup(equals + 1);
        count++;
    }
    free(line);
    fclose(file);
}

const char *machine_text(const char *key) {
    pthread_once(&once, load);
    for (size_t i = 0; i < count; i++)
        if (strcmp(entries[i].key, key) == 0) return entries[i].value;
    return NULL;
}

const char *machine_gpu(unsigned index, const char *name) {
    char key[128];
    snprintf(key, sizeof key, "gpu.%u.%s", index, name);
    return machine_text(key);
}

double machine_number(const char *key, double fallback) {
    const char *text = machine_text(key);
    return text ? strtod(text, NULL) : fallback;
}

double machine_gpu_number(unsigned index, const char *name, double fallback) {
    const char *text = machine_gpu(index, name);
    return text ? strtod(text, NULL) : fallback;
}
