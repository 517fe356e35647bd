/*
 * A host for Go output plugins that speaks Fluent Bit's plug-in ABI in Fluent Bit's
 * order: register, init of each output with its properties, flush from worker threads
 * on small coroutine stacks, exit, unregister. It is told what to do line by line on
 * standard input and answers line by line on standard output. It replaces no real
 * Fluent Bit: it lets tests decide which chunk comes when, and how often.
 *
 * After Fluent Bit 5.1.1: src/flb_plugin_proxy.c and src/proxy/go/go.c (symbols, call
 * order, structures), include/fluent-bit/flb_api.h (slots), src/flb_output_thread.c
 * (workers), include/fluent-bit/flb_coro.h (stack size).
 *
 * Commands, answers behind "->":
 *
 *   workers N                       before the first flush; 0: flush on the main thread
 *   output OUTPUT                   a new output
 *   set OUTPUT KEY VALUE            a property of it
 *   init OUTPUT                     -> init OUTPUT CODE
 *   chunk CHUNK FILE                the bytes of a file
 *   frame CHUNK FILE FIRST COUNT PATH SECONDS
 *                                   lines of a log file as v2 records, with the keys
 *                                   "filename" (PATH), "offset" and "log"; FIRST counts
 *                                   from 1; the first record's time is SECONDS
 *   flush OUTPUT CHUNK TAG          -> flush OUTPUT CHUNK CODE, when it returns
 *   wait N                          until N flushes have returned
 *   exit OUTPUT                     -> exit OUTPUT CODE
 *   unregister                      -> unregister
 *   fork                            as Daemon On does: what follows is done by the child
 *   quit
 *
 * CODE is what the plug-in returned: 0 error, 1 ok, 2 retry. The memory of a chunk is
 * unmapped as soon as its flush returns, so that a plug-in which still reads it dies.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <ucontext.h>

#define CORO_STACK (64 * 1024) /* flb_coro.h: FLB_CORO_STACK_SIZE_BYTE, at least */

struct proxy_def { /* flb_plugin_proxy.h, without what newer versions append */
    int type;
    int proxy;
    int flags;
    char *name;
    char *description;
    char later[64]; /* room for what they append */
};

struct property {
    char *key;
    char *value;
    struct property *next;
};

struct output {
    char *name;
    struct property *properties;
    struct proxy_context { void *remote_context; } context;
    struct output *next;
};

struct api { /* flb_api.h; slot 0 is the only one that fluent-bit-go uses */
    char *(*output_get_property)(char *, void *);
    void *others[8];
};

struct plugin { /* struct flbgo_output_plugin: one for each shared object */
    char *name;
    struct api *api;
    struct output *o_ins;
    struct proxy_context *context;
};

struct chunk {
    char *name;
    char *data;
    size_t size;
    struct chunk *next;
};

static struct {
    int (*register_)(struct proxy_def *);
    int (*init)(struct plugin *);
    int (*flush_ctx)(void *, const void *, size_t, char *);
    int (*exit_ctx)(void *);
    void (*unregister)(struct proxy_def *);
} symbols;

static struct proxy_def def;
static struct api api;
static struct plugin plugin = {.api = &api};
static struct output *outputs;
static struct chunk *chunks;

static pthread_mutex_t say_lock = PTHREAD_MUTEX_INITIALIZER;

static void say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    pthread_mutex_lock(&say_lock);
    vprintf(format, args);
    putchar('\n');
    fflush(stdout);
    pthread_mutex_unlock(&say_lock);
    va_end(args);
}

static void die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("host: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    exit(2);
}

static void *must(void *p)
{
    if (p == NULL) {
        die("out of memory");
    }
    return p;
}

/* The first property of that name counts, in any case (src/flb_kv.c). */
static char *get_property(char *key, void *instance)
{
    struct output *o = instance;
    for (struct property *p = o->properties; p != NULL; p = p->next) {
        if (strcasecmp(p->key, key) == 0) {
            return p->value;
        }
    }
    return NULL;
}

static struct output *find_output(const char *name)
{
    for (struct output *o = outputs; o != NULL; o = o->next) {
        if (strcmp(o->name, name) == 0) {
            return o;
        }
    }
    die("no output %s", name);
    return NULL;
}

static struct chunk *find_chunk(const char *name)
{
    for (struct chunk *c = chunks; c != NULL; c = c->next) {
        if (strcmp(c->name, name) == 0) {
            return c;
        }
    }
    die("no chunk %s", name);
    return NULL;
}

static void add_chunk(const char *name, char *data, size_t size)
{
    struct chunk *c = must(calloc(1, sizeof(*c)));
    c->name = must(strdup(name));
    c->data = data;
    c->size = size;
    c->next = chunks;
    chunks = c;
}

static char *read_file(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        die("%s can't be read", path);
    }
    char *data = NULL;
    FILE *mem = must(open_memstream(&data, size));
    char block[65536];
    size_t n;
    while ((n = fread(block, 1, sizeof(block), f)) > 0) {
        fwrite(block, 1, n, mem);
    }
    fclose(mem);
    fclose(f);
    return data;
}

/* MessagePack, as far as a record needs it. */
static void pack_number(FILE *out, uint64_t value, int bytes)
{
    for (int i = bytes - 1; i >= 0; i--) {
        fputc((int)(value >> (8 * i)) & 0xff, out);
    }
}

static void pack_text(FILE *out, const char *text, size_t size)
{
    fputc(0xdb, out); /* str 32 */
    pack_number(out, size, 4);
    fwrite(text, 1, size, out);
}

static void pack_record(FILE *out, uint32_t seconds, uint32_t nanos, const char *path,
                        size_t offset, const char *line, size_t size)
{
    fputc(0x92, out); /* [header, body] */
    fputc(0x92, out); /* header: [time, metadata] */
    fputc(0xd7, out); /* EventTime: fixext 8 of type 0 */
    fputc(0x00, out);
    pack_number(out, seconds, 4);
    pack_number(out, nanos, 4);
    fputc(0x80, out); /* {} */
    fputc(0x83, out); /* body of three */
    pack_text(out, "filename", 8);
    pack_text(out, path, strlen(path));
    pack_text(out, "offset", 6);
    fputc(0xcf, out); /* uint 64 */
    pack_number(out, offset, 8);
    pack_text(out, "log", 3);
    pack_text(out, line, size);
}

static void frame(const char *name, const char *file, long first, long count, const char *path, long seconds)
{
    size_t size, framed_size;
    char *data = read_file(file, &size), *framed = NULL;
    FILE *out = must(open_memstream(&framed, &framed_size));
    long number = 1;
    for (char *line = data; line < data + size && number < first + count; number++) {
        char *end = memchr(line, '\n', data + size - line);
        if (end == NULL) {
            end = data + size;
        }
        if (number >= first) {
            long n = number - first;
            pack_record(out, seconds + n / 1000, n % 1000 * 1000000, path, line - data, line, end - line);
        }
        line = end + 1;
    }
    fclose(out);
    free(data);
    add_chunk(name, framed, framed_size);
}

/* One flush, as a coroutine of the thread that runs it. */
struct flush {
    struct output *output;
    struct chunk *chunk;
    char *tag;
    int code;
    struct flush *next;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_cond_t returned;
    struct flush *first, **last;
    int workers;
    long done;
} queue = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, &queue.first, 0, 0};

static _Thread_local struct flush *in_coroutine;

static void flush_coroutine(void)
{
    struct flush *f = in_coroutine;
    size_t size = f->chunk->size;
    char *data = mmap(NULL, size ? size : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) {
        die("out of memory");
    }
    memcpy(data, f->chunk->data, size);
    f->code = symbols.flush_ctx(f->output->context.remote_context, data, size, f->tag);
    munmap(data, size ? size : 1);
}

static void run_flush(struct flush *f)
{
    ucontext_t caller, coroutine;
    char *stack = must(malloc(CORO_STACK));
    in_coroutine = f;
    getcontext(&coroutine);
    coroutine.uc_stack.ss_sp = stack;
    coroutine.uc_stack.ss_size = CORO_STACK;
    coroutine.uc_link = &caller;
    makecontext(&coroutine, flush_coroutine, 0);
    swapcontext(&caller, &coroutine);
    free(stack);
    say("flush %s %s %d", f->output->name, f->chunk->name, f->code);
    free(f->tag);
    free(f);
    pthread_mutex_lock(&queue.lock);
    queue.done++;
    pthread_cond_broadcast(&queue.returned);
    pthread_mutex_unlock(&queue.lock);
}

static void wait_for(long flushes)
{
    pthread_mutex_lock(&queue.lock);
    while (queue.done < flushes) {
        pthread_cond_wait(&queue.returned, &queue.lock);
    }
    pthread_mutex_unlock(&queue.lock);
}

static void *worker(void *arg)
{
    (void)arg;
    for (;;) {
        pthread_mutex_lock(&queue.lock);
        while (queue.first == NULL) {
            pthread_cond_wait(&queue.wake, &queue.lock);
        }
        struct flush *f = queue.first;
        queue.first = f->next;
        if (queue.first == NULL) {
            queue.last = &queue.first;
        }
        pthread_mutex_unlock(&queue.lock);
        run_flush(f);
    }
    return NULL;
}

static void start_workers(int n)
{
    for (; queue.workers < n; queue.workers++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, worker, NULL) != 0) {
            die("no thread");
        }
        pthread_detach(thread);
    }
}

static void flush(const char *output, const char *chunk, const char *tag)
{
    struct flush *f = must(calloc(1, sizeof(*f)));
    f->output = find_output(output);
    f->chunk = find_chunk(chunk);
    f->tag = must(strdup(tag));
    if (queue.workers == 0) {
        run_flush(f);
        return;
    }
    pthread_mutex_lock(&queue.lock);
    *queue.last = f;
    queue.last = &f->next;
    pthread_cond_signal(&queue.wake);
    pthread_mutex_unlock(&queue.lock);
}

static void init_output(const char *name)
{
    struct output *o = find_output(name);
    plugin.o_ins = o; /* overwritten at each init (go.c) */
    plugin.context = &o->context;
    say("init %s %d", name, symbols.init(&plugin));
}

static void set_property(const char *output, const char *key, const char *value)
{
    struct output *o = find_output(output);
    struct property **last = &o->properties;
    while (*last != NULL) {
        last = &(*last)->next;
    }
    *last = must(calloc(1, sizeof(**last)));
    (*last)->key = must(strdup(key));
    (*last)->value = must(strdup(value));
}

static void add_output(const char *name)
{
    struct output *o = must(calloc(1, sizeof(*o)));
    o->name = must(strdup(name));
    o->next = outputs;
    outputs = o;
}

/* Splits a line at blanks into at most max words; the last takes the rest. */
static int split(char *line, char **words, int max)
{
    int n = 0;
    line[strcspn(line, "\n")] = '\0';
    while (n < max && *line != '\0') {
        words[n++] = line;
        if (n < max) {
            line += strcspn(line, " ");
            if (*line != '\0') {
                *line++ = '\0';
            }
        } else {
            line += strlen(line);
        }
    }
    return n;
}

static void run(char *line)
{
    char *w[7], copy[64];
    int max = 7;
    snprintf(copy, sizeof(copy), "%s", line);
    copy[strcspn(copy, " \n")] = '\0';
    if (strcmp(copy, "set") == 0) {
        max = 4; /* a value may hold blanks */
    }
    int n = split(line, w, max);
    if (n == 0) {
        return;
    }
    if (strcmp(w[0], "workers") == 0 && n == 2) {
        start_workers(atoi(w[1]));
    } else if (strcmp(w[0], "output") == 0 && n == 2) {
        add_output(w[1]);
    } else if (strcmp(w[0], "set") == 0 && n >= 3) {
        set_property(w[1], w[2], n > 3 ? w[3] : "");
    } else if (strcmp(w[0], "init") == 0 && n == 2) {
        init_output(w[1]);
    } else if (strcmp(w[0], "chunk") == 0 && n == 3) {
        size_t size;
        char *data = read_file(w[2], &size);
        add_chunk(w[1], data, size);
    } else if (strcmp(w[0], "frame") == 0 && n == 7) {
        frame(w[1], w[2], atol(w[3]), atol(w[4]), w[5], atol(w[6]));
    } else if (strcmp(w[0], "flush") == 0 && n == 4) {
        flush(w[1], w[2], w[3]);
    } else if (strcmp(w[0], "wait") == 0 && n == 2) {
        wait_for(atol(w[1]));
    } else if (strcmp(w[0], "exit") == 0 && n == 2) {
        say("exit %s %d", w[1], symbols.exit_ctx(find_output(w[1])->context.remote_context));
    } else if (strcmp(w[0], "unregister") == 0 && n == 1) {
        symbols.unregister(&def);
        say("unregister");
    } else if (strcmp(w[0], "fork") == 0 && n == 1) {
        pid_t child = fork(); /* as "Daemon On" does: what follows is the child's */
        if (child > 0) {
            int status = 0;
            waitpid(child, &status, 0);
            _exit(WEXITSTATUS(status));
        }
    } else if (strcmp(w[0], "quit") == 0) {
        exit(0);
    } else {
        die("not understood: %s with %d words", w[0], n);
    }
}

static void *symbol(void *object, const char *name)
{
    void *p = dlsym(object, name);
    if (p == NULL) {
        die("the plug-in has no %s", name);
    }
    return p;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        die("usage: host PLUGIN.so < commands");
    }
    void *object = dlopen(argv[1], RTLD_LAZY);
    if (object == NULL) {
        die("%s", dlerror());
    }
    *(void **)&symbols.register_ = symbol(object, "FLBPluginRegister");
    *(void **)&symbols.init = symbol(object, "FLBPluginInit");
    *(void **)&symbols.flush_ctx = symbol(object, "FLBPluginFlushCtx");
    *(void **)&symbols.exit_ctx = symbol(object, "FLBPluginExitCtx");
    *(void **)&symbols.unregister = symbol(object, "FLBPluginUnregister");
    api.output_get_property = get_property;
    if (symbols.register_(&def) != 0 || def.type != 2 || def.proxy != 11) {
        die("the plug-in did not register as a Go output");
    }
    plugin.name = def.name;
    say("register %s", def.name);

    char *line = NULL;
    size_t size = 0;
    while (getline(&line, &size, stdin) > 0) {
        run(line);
    }
    free(line);
    return 0;
}
