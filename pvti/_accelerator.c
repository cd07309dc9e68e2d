/* Spans, begun and ended: what spans.py does in Python, in C, with the same names.

   Built where there is a compiler; without it pvti is slower and does the same. All of this runs
   under the interpreter's lock, which is let go only inside calls of Python code and while checksums
   are computed; no pointer to what such a call may change is kept across one. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <structmember.h>

#ifdef Py_GIL_DISABLED
#error "without the interpreter's lock pvti uses spans.py"
#endif
#if PY_BIG_ENDIAN
#error "records are little-endian"
#endif

#define INTERFACE 4                         /* as in core.py */
#define LABEL_BITS 28                       /* as in schema.py */
#define OVERLAPPING (1u << LABEL_BITS)
#define CHUNK_RECORDS 65536
#define KEPT_RECORDS 4096                   /* memory that a track keeps when it is taken from */

typedef struct { uint64_t begin; uint32_t duration, label; } Record;
typedef struct { int64_t begin; uint32_t key; } Open;

typedef struct {
    PyObject_HEAD
    PyObject *begins, *ends, *keys;
} Channel;

typedef struct {
    PyObject_HEAD
    Open *open;
    Record *records;
    Py_ssize_t opened, open_room, recorded, record_room;
    PyObject *chunks, *long_events;
    int64_t due;                            /* an end after this calls `hurry` */
} Spans;

typedef struct {
    PyObject_HEAD
    Channel *channel;
    PyObject *label, *metadata;
    uint32_t key;                           /* 0: not known yet */
} Span;

static PyTypeObject ChannelType, SpansType, SpanType;
static PyObject *name_track, *name_current, *name_asyncio, *name_found;
static PyObject *test_clock;                /* in place of the clock; NULL outside tests */

/* ---- time ---- */

static int64_t now(void)
{
    if (test_clock != NULL) {
        PyObject *time = PyObject_CallNoArgs(test_clock);
        int64_t value = time == NULL ? -1 : PyLong_AsLongLong(time);
        Py_XDECREF(time);
        return value;
    }
#if PY_VERSION_HEX >= 0x030D0000
    PyTime_t time;
    return PyTime_PerfCounterRaw(&time) < 0 ? 0 : time;
#else
    return _PyTime_GetPerfCounter();
#endif
}

static PyObject *set_clock(PyObject *module, PyObject *clock)
{
    Py_XSETREF(test_clock, clock == Py_None ? NULL : Py_NewRef(clock));
    Py_RETURN_NONE;
}

/* ---- spans of one thread or task ---- */

static int grow(void **items, Py_ssize_t *room, size_t size)
{
    Py_ssize_t more = *room ? *room * 2 : 64;
    void *moved = more > PY_SSIZE_T_MAX / (Py_ssize_t)size ? NULL : PyMem_Realloc(*items, more * size);
    if (moved == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    *items = moved;
    *room = more;
    return 0;
}

static int push(Spans *self, uint32_t key, int64_t begin)
{
    if (self->opened == self->open_room &&
        grow((void **)&self->open, &self->open_room, sizeof(Open)) < 0)
        return -1;
    self->open[self->opened++] = (Open){begin, key};
    return 0;
}

static int record(Spans *self, uint32_t label, int64_t begin, int64_t end)
{
    uint64_t duration = (uint64_t)end - (uint64_t)begin;
    if (duration >> 32) {                   /* a negative one, too */
        Py_INCREF(self);
        PyObject *row = Py_BuildValue("LLII", (long long)begin, (long long)(end - begin),
                                      label >> LABEL_BITS, label & (OVERLAPPING - 1));
        int failed = row == NULL || PyList_Append(self->long_events, row) < 0;
        Py_XDECREF(row);
        Py_DECREF(self);
        return failed ? -1 : 0;
    }
    if (self->recorded == self->record_room &&
        grow((void **)&self->records, &self->record_room, sizeof(Record)) < 0)
        return -1;
    self->records[self->recorded++] = (Record){(uint64_t)begin, (uint32_t)duration, label};
    return 0;
}

static PyObject *spans_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    Spans *self = (Spans *)type->tp_alloc(type, 0);
    if (self != NULL && ((self->chunks = PyList_New(0)) == NULL ||
                         (self->long_events = PyList_New(0)) == NULL))
        Py_CLEAR(self);
    if (self != NULL)
        self->due = INT64_MAX;
    return (PyObject *)self;
}

static void spans_dealloc(Spans *self)
{
    PyMem_Free(self->open);
    PyMem_Free(self->records);
    Py_XDECREF(self->chunks);
    Py_XDECREF(self->long_events);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *spans_push(Spans *self, PyObject *args)
{
    unsigned int key;
    long long begin;
    if (!PyArg_ParseTuple(args, "IL", &key, &begin) || push(self, key, begin) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* Take off the outermost span of this key and begin. */
static int drop(Spans *self, uint32_t key, int64_t begin)
{
    for (Py_ssize_t place = 0; place < self->opened; place++)
        if (self->open[place].key == key && self->open[place].begin == begin) {
            Open *at = self->open + place;
            memmove(at, at + 1, (--self->opened - place) * sizeof(Open));
            return 1;
        }
    return 0;
}

static PyObject *spans_drop(Spans *self, PyObject *args)
{
    unsigned int key;
    long long begin;
    if (!PyArg_ParseTuple(args, "IL", &key, &begin))
        return NULL;
    return PyBool_FromLong(drop(self, key, begin));
}

static PyObject *spans_end(Spans *self, PyObject *args)
{
    unsigned int key;
    long long end, begin = -1;
    if (!PyArg_ParseTuple(args, "IL|L", &key, &end, &begin))
        return NULL;
    Py_ssize_t last = self->opened - 1, place = last;
    while (place >= 0 && (self->open[place].key != key ||
                          (begin != -1 && self->open[place].begin != begin)))
        place--;
    if (place < 0)
        Py_RETURN_NONE;
    begin = self->open[place].begin;
    if (place == last)
        self->opened--;
    else
        drop(self, key, begin);
    if (record(self, place == last ? key : key | OVERLAPPING, begin, end) < 0)
        return NULL;
    return PyLong_FromLongLong(begin);
}

static PyObject *spans_spans(Spans *self, PyObject *unused)
{
    Py_ssize_t count = self->opened;
    PyObject *list = PyList_New(count);
    /* To make a tuple may collect garbage, and so run code that changes what is open. */
    for (Py_ssize_t place = 0; list != NULL && place < count; place++) {
        Open span = place < self->opened ? self->open[place] : (Open){0, 0};
        PyObject *pair = Py_BuildValue("IL", span.key, (long long)span.begin);
        if (pair == NULL)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, place, pair);
    }
    if (list != NULL && self->opened < count &&
        PyList_SetSlice(list, self->opened, count, NULL) < 0)
        Py_CLEAR(list);
    return list;
}

static PyObject *chunk_of(const Record *records, Py_ssize_t count)
{
    /* A finalizer or handler may record between another event's clock and its record. */
    uint64_t begin = records[0].begin, end = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        uint64_t ended = records[i].begin + records[i].duration;
        if (records[i].begin < begin)
            begin = records[i].begin;
        if (ended > end)
            end = ended;
    }
    return Py_BuildValue("nKKy#", count, (unsigned long long)begin, (unsigned long long)end,
                         (const char *)records, count * (Py_ssize_t)sizeof(Record));
}

/* Add a chunk of records to the list. */
static int add_chunk(PyObject *chunks, const Record *records, Py_ssize_t count)
{
    PyObject *chunk = chunk_of(records, count);
    int failed = chunk == NULL || PyList_Append(chunks, chunk) < 0;
    Py_XDECREF(chunk);
    return failed ? -1 : 0;
}

/* Put back records that found no memory as chunks, before those recorded meanwhile. */
static int put_back(Spans *self, const Record *records, Py_ssize_t count)
{
    while (self->record_room - self->recorded < count)
        if (grow((void **)&self->records, &self->record_room, sizeof(Record)) < 0)
            return -1;
    memmove(self->records + count, self->records, self->recorded * sizeof(Record));
    memcpy(self->records, records, count * sizeof(Record));
    self->recorded += count;
    return 0;
}

static PyObject *spans_pack(Spans *self, PyObject *unused)
{
    /* Taken off before more is allocated: to allocate may run code, which may record. */
    Record *records = self->records;
    Py_ssize_t count = self->recorded, room = self->record_room, first = 0;
    int failed = 0;
    self->records = NULL;
    self->recorded = self->record_room = 0;
    Py_INCREF(self);
    while (first < count && !failed) {
        Py_ssize_t some = count - first < CHUNK_RECORDS ? count - first : CHUNK_RECORDS;
        failed = add_chunk(self->chunks, records + first, some) < 0;
        first += failed ? 0 : some;
    }
    if (self->records == NULL && (failed || room <= KEPT_RECORDS)) {
        if (failed)
            memmove(records, records + first, (count - first) * sizeof(Record));
        self->records = records;
        self->recorded = count - first;
        self->record_room = room;
    } else {
        if (failed)
            put_back(self, records + first, count - first);
        PyMem_Free(records);
    }
    Py_DECREF(self);
    if (failed)
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef spans_methods[] = {
    {"push", (PyCFunction)spans_push, METH_VARARGS, "Begin a span."},
    {"end", (PyCFunction)spans_end, METH_VARARGS, "End the innermost span of this key (and begin)."},
    {"drop", (PyCFunction)spans_drop, METH_VARARGS, "Take what is open off the list."},
    {"spans", (PyCFunction)spans_spans, METH_NOARGS, "Copy what is open."},
    {"pack", (PyCFunction)spans_pack, METH_NOARGS, "Move what has ended to the lists."},
    {NULL},
};

static PyMemberDef spans_members[] = {
    {"due", T_LONGLONG, offsetof(Spans, due), 0, NULL},
    {"chunks", T_OBJECT_EX, offsetof(Spans, chunks), READONLY, NULL},
    {"long_events", T_OBJECT_EX, offsetof(Spans, long_events), READONLY, NULL},
    {NULL},
};

static PyTypeObject SpansType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "pvti._accelerator.Spans",
    .tp_doc = "What is open and what has ended in one thread or task.",
    .tp_basicsize = sizeof(Spans),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_new = spans_new,
    .tp_dealloc = (destructor)spans_dealloc,
    .tp_methods = spans_methods,
    .tp_members = spans_members,
};

/* ---- the track of the caller ---- */

/* The last track found in this thread. It holds while neither the buffers nor the context of the
   thread have changed: asyncio enters a context for each step of a task, and each entry and each
   change of a context gives it a version not seen before. The thread state keeps the track alive,
   under a key of its own, so that a thread that ends lets go of it. */
static _Thread_local struct {
    PyObject *buffers;
    uint64_t thread, version;
    Spans *track;
} found;

static Spans *find_track(PyObject *buffers)
{
    Py_INCREF(buffers);
    PyObject *modules = PySys_GetObject("modules");
    int tasks = modules != NULL && PyDict_Check(modules) &&
                PyDict_Contains(modules, name_asyncio) == 1;
    PyObject *track = PyObject_GetAttr(buffers, tasks ? name_current : name_track);
    PyObject *kept = PyThreadState_GetDict();
    if (track != NULL && !PyObject_TypeCheck(track, &SpansType)) {
        PyErr_SetString(PyExc_TypeError, "a track of pvti was expected");
        Py_CLEAR(track);
    }
    if (track != NULL && kept != NULL && !PyErr_Occurred()) {
        PyObject *both = PyTuple_Pack(2, buffers, track);
        if (both != NULL && PyDict_SetItem(kept, name_found, both) == 0) {
            PyThreadState *state = PyThreadState_Get();
            found.buffers = buffers;
            found.thread = state->id;
            found.version = state->context_ver;
            found.track = (Spans *)track;
        }
        Py_XDECREF(both);
    }
    Py_DECREF(buffers);
    Py_XDECREF(track);                      /* the thread state holds it */
    return PyErr_Occurred() ? NULL : (Spans *)track;
}

static inline Spans *track_of(PyObject *buffers)
{
    PyThreadState *state = PyThreadState_Get();
    if (found.buffers == buffers && found.thread == state->id &&
        found.version == state->context_ver)
        return found.track;
    return find_track(buffers);
}

/* Tell of a fault: the traced program must not meet it. Ctrl-C in the middle of it, it must, and
   what its own signal handlers raise: that `lost` raises on. */
static int forgive(void)
{
    if (!PyErr_Occurred())
        return 0;
    if (!PyErr_ExceptionMatches(PyExc_Exception))
        return -1;
    PyObject *kind, *error, *traceback, *told = NULL;
    PyErr_Fetch(&kind, &error, &traceback);
    PyErr_NormalizeException(&kind, &error, &traceback);
    if (traceback != NULL)
        PyException_SetTraceback(error, traceback);
    PyObject *spans = PyImport_ImportModule("pvti.spans");
    if (spans != NULL)
        told = PyObject_CallMethod(spans, "lost", "O", error);
    int failed = spans != NULL && told == NULL;
    Py_XDECREF(spans);
    Py_XDECREF(told);
    Py_XDECREF(kind);
    Py_XDECREF(error);
    Py_XDECREF(traceback);
    if (failed)
        return -1;
    PyErr_Clear();
    return 0;
}

static int is_recorded(PyObject *buffers)
{
    return buffers != NULL && buffers != Py_None;
}

/* Give the number of a label; 0 with an exception. */
static uint32_t key_of(Channel *channel, PyObject *label)
{
    if (channel->keys == NULL || !PyDict_Check(channel->keys)) {
        PyErr_SetString(PyExc_TypeError, "a channel of pvti was expected");
        return 0;
    }
    if (PyUnicode_CheckExact(label)) {
        PyObject *number = PyDict_GetItemWithError(channel->keys, label);
        if (number != NULL)
            return (uint32_t)PyLong_AsUnsignedLong(number);
        if (PyErr_Occurred())
            return 0;
    }
    PyObject *spans = PyImport_ImportModule("pvti.spans"), *number = NULL;
    if (spans != NULL)
        number = PyObject_CallMethod(spans, "find_key", "OO", channel, label);
    unsigned long key = number == NULL ? 0 : PyLong_AsUnsignedLong(number);
    Py_XDECREF(spans);
    Py_XDECREF(number);
    return PyErr_Occurred() ? 0 : (uint32_t)key;
}

static int begin_span(PyObject *buffers, uint32_t key)
{
    Spans *track = track_of(buffers);
    if (track == NULL || key == 0)
        return -1;
    if (test_clock == NULL)
        return push(track, key, now());
    Py_INCREF(track);
    int failed = push(track, key, now());
    Py_DECREF(track);
    return failed;
}

/* End the innermost span when it is of this key, and there is no more to do; else ask Python. */
static int end_span(PyObject *buffers, uint32_t key, int64_t end, PyObject *metadata, int count)
{
    PyObject *done;
    Spans *track = track_of(buffers);
    if (track == NULL)
        return -1;
    if (metadata == Py_None && track->opened && track->open[track->opened - 1].key == key) {
        Open span = track->open[--track->opened];
        if (end <= track->due)
            return record(track, key, span.begin, end);
        if (record(track, key, span.begin, end) < 0)
            return -1;
        Py_INCREF(track);
        done = PyObject_CallMethod((PyObject *)track, "hurry", "L", (long long)end);
    } else {
        Py_INCREF(track);
        done = PyObject_CallMethod((PyObject *)track, "finish", "ILOi", key, (long long)end,
                                   metadata, count);
    }
    Py_DECREF(track);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* ---- channels ---- */

static void channel_dealloc(Channel *self)
{
    Py_XDECREF(self->begins);
    Py_XDECREF(self->ends);
    Py_XDECREF(self->keys);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMemberDef channel_members[] = {
    {"begins", T_OBJECT, offsetof(Channel, begins), 0, NULL},
    {"ends", T_OBJECT, offsetof(Channel, ends), 0, NULL},
    {"keys", T_OBJECT, offsetof(Channel, keys), 0, NULL},
    {NULL},
};

static PyTypeObject ChannelType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "pvti._accelerator.Channel",
    .tp_doc = "Where the begins and ends of a channel go, and the keys of its labels.",
    .tp_basicsize = sizeof(Channel),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_new = PyType_GenericNew,
    .tp_dealloc = (destructor)channel_dealloc,
    .tp_members = channel_members,
};

/* ---- blocks ---- */

static int span_init(Span *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"channel", "label", "metadata", NULL};
    PyObject *channel, *label, *metadata = Py_None;
    if (kwargs == NULL && PyTuple_GET_SIZE(args) == 2) {
        channel = PyTuple_GET_ITEM(args, 0);
        label = PyTuple_GET_ITEM(args, 1);
    } else if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|O:Tracepoint", names, &channel,
                                            &label, &metadata)) {
        return -1;
    }
    if (!PyObject_TypeCheck(channel, &ChannelType)) {
        PyErr_Format(PyExc_TypeError, "channel: a TraceChannel, not %.100s",
                     Py_TYPE(channel)->tp_name);
        return -1;
    }
    Py_XSETREF(self->channel, (Channel *)Py_NewRef(channel));
    Py_XSETREF(self->label, Py_NewRef(label));
    Py_XSETREF(self->metadata, Py_NewRef(metadata));
    self->key = 0;
    /* Labels are kept for good: of a program that is not traced, none is. */
    if (is_recorded(self->channel->begins))
        self->key = key_of(self->channel, self->label);
    return forgive();
}

static int span_traverse(Span *self, visitproc visit, void *arg)
{
    Py_VISIT(self->channel);
    Py_VISIT(self->label);
    Py_VISIT(self->metadata);
    return 0;
}

static int span_clear(Span *self)
{
    Py_CLEAR(self->label);
    Py_CLEAR(self->metadata);
    return 0;
}

static void span_dealloc(Span *self)
{
    PyObject_GC_UnTrack(self);
    Py_XDECREF(self->channel);
    span_clear(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *span_enter(Span *self, PyObject *unused)
{
    if (self->channel != NULL && is_recorded(self->channel->begins)) {
        if (self->key == 0)
            self->key = key_of(self->channel, self->label);
        if (self->key == 0 || begin_span(self->channel->begins, self->key) < 0)
            if (forgive() < 0)
                return NULL;
    }
    return Py_NewRef(self);
}

static PyObject *span_exit(Span *self, PyObject *const *args, Py_ssize_t count)
{
    if (self->channel != NULL && is_recorded(self->channel->ends)) {
        int64_t end = now();
        PyObject *buffers = self->channel->ends;
        if (end_span(buffers, self->key, end, self->metadata, 0) < 0 && forgive() < 0)
            return NULL;
    }
    Py_RETURN_NONE;
}

/* Take `channel` and `label`, by place or by name. */
static int channel_and_label(PyObject *const *args, Py_ssize_t count, PyObject *names,
                             Channel **channel, PyObject **label)
{
    Py_ssize_t named = names == NULL ? 0 : PyTuple_GET_SIZE(names);
    PyObject *found[2] = {count > 0 ? args[0] : NULL, count > 1 ? args[1] : NULL};
    for (Py_ssize_t i = 0; i < named; i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i);
        int place = PyUnicode_CompareWithASCIIString(name, "channel") == 0 ? 0
                  : PyUnicode_CompareWithASCIIString(name, "label") == 0 ? 1 : -1;
        if (place < 0 || found[place] != NULL) {
            PyErr_Format(PyExc_TypeError, "unexpected argument %R", name);
            return 0;
        }
        found[place] = args[count + i];
    }
    if (count + named != 2 || !PyObject_TypeCheck(found[0], &ChannelType)) {
        PyErr_SetString(PyExc_TypeError, "a TraceChannel and a label were expected");
        return 0;
    }
    *channel = (Channel *)found[0];
    *label = found[1];
    return 1;
}

static PyObject *span_begin(PyObject *unused, PyObject *const *args, Py_ssize_t count,
                            PyObject *names)
{
    Channel *channel;
    PyObject *label;
    if (!channel_and_label(args, count, names, &channel, &label))
        return NULL;
    if (is_recorded(channel->begins)) {
        uint32_t key = key_of(channel, label);
        if ((key == 0 || !is_recorded(channel->begins) || begin_span(channel->begins, key) < 0) &&
            forgive() < 0)
            return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *span_end(PyObject *unused, PyObject *const *args, Py_ssize_t count,
                          PyObject *names)
{
    Channel *channel;
    PyObject *label;
    if (!channel_and_label(args, count, names, &channel, &label))
        return NULL;
    if (is_recorded(channel->ends)) {
        int64_t end = now();
        uint32_t key = key_of(channel, label);
        /* While a channel is disabled its begins are dropped: then their ends are no mistake. */
        int counted = is_recorded(channel->begins);
        if ((key == 0 || !is_recorded(channel->ends) ||
             end_span(channel->ends, key, end, Py_None, counted) < 0) && forgive() < 0)
            return NULL;
    }
    Py_RETURN_NONE;
}

static PyMethodDef span_methods[] = {
    {"__enter__", (PyCFunction)span_enter, METH_NOARGS, "Begin a span."},
    {"__exit__", (PyCFunction)(void (*)(void))span_exit, METH_FASTCALL, "End it."},
    {"begin", (PyCFunction)(void (*)(void))span_begin,
     METH_STATIC | METH_FASTCALL | METH_KEYWORDS,
     "Begin an event that `end` ends, in the same thread."},
    {"end", (PyCFunction)(void (*)(void))span_end,
     METH_STATIC | METH_FASTCALL | METH_KEYWORDS,
     "End the innermost open event of this channel and label; without one, count that."},
    {NULL},
};

static PyMemberDef span_members[] = {
    {"channel", T_OBJECT, offsetof(Span, channel), READONLY, NULL},
    {"label", T_OBJECT, offsetof(Span, label), READONLY, NULL},
    {"metadata", T_OBJECT, offsetof(Span, metadata), READONLY, NULL},
    {NULL},
};

static PyTypeObject SpanType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "pvti._accelerator.Span",
    .tp_doc = "A block of a channel and label: `with` begins and ends a span.",
    .tp_basicsize = sizeof(Span),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)span_init,
    .tp_traverse = (traverseproc)span_traverse,
    .tp_clear = (inquiry)span_clear,
    .tp_dealloc = (destructor)span_dealloc,
    .tp_methods = span_methods,
    .tp_members = span_members,
};

/* ---- checksums ---- */

#define CRC_BYTES 16                        /* at a time */

/* CRC-32 as zlib has it: entry [n][b] is of byte b with n bytes after it. */
static uint32_t crc_table[CRC_BYTES][256];

static void fill_crc_table(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0xEDB88320u : crc >> 1;
        crc_table[0][byte] = crc;
    }
    for (int after = 1; after < CRC_BYTES; after++)
        for (int byte = 0; byte < 256; byte++) {
            uint32_t crc = crc_table[after - 1][byte];
            crc_table[after][byte] = crc >> 8 ^ crc_table[0][crc & 0xFF];
        }
}

static uint32_t crc_of_word(uint64_t word, uint32_t (*table)[256])
{
    return table[7][word & 0xFF] ^ table[6][word >> 8 & 0xFF] ^
           table[5][word >> 16 & 0xFF] ^ table[4][word >> 24 & 0xFF] ^
           table[3][word >> 32 & 0xFF] ^ table[2][word >> 40 & 0xFF] ^
           table[1][word >> 48 & 0xFF] ^ table[0][word >> 56];
}

static uint32_t crc_of(const unsigned char *data, Py_ssize_t size)
{
    uint32_t crc = 0xFFFFFFFFu;
    for (; size >= CRC_BYTES; data += CRC_BYTES, size -= CRC_BYTES) {
        uint64_t words[2];
        memcpy(words, data, CRC_BYTES);
        crc = crc_of_word(words[0] ^ crc, crc_table + 8) ^ crc_of_word(words[1], crc_table);
    }
    while (size-- > 0)
        crc = crc >> 8 ^ crc_table[0][(crc ^ *data++) & 0xFF];
    return ~crc;
}

static PyObject *checksums(PyObject *module, PyObject *given)
{
    PyObject *all = PySequence_Tuple(given), *found = NULL; /* keeps them while others run */
    Py_ssize_t count = all == NULL ? 0 : PyTuple_GET_SIZE(all);
    uint32_t *sums = PyMem_New(uint32_t, count + 1);
    for (Py_ssize_t i = 0; i < count; i++)
        if (!PyBytes_Check(PyTuple_GET_ITEM(all, i)))
            PyErr_SetString(PyExc_TypeError, "bytes were expected");
    if (sums == NULL)
        PyErr_NoMemory();
    if (!PyErr_Occurred()) {
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t i = 0; i < count; i++) {
            PyObject *data = PyTuple_GET_ITEM(all, i);
            sums[i] = crc_of((unsigned char *)PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data));
        }
        Py_END_ALLOW_THREADS
        found = PyList_New(count);
    }
    for (Py_ssize_t i = 0; found != NULL && i < count; i++) {
        PyObject *sum = PyLong_FromUnsignedLong(sums[i]);
        if (sum == NULL)
            Py_CLEAR(found);
        else
            PyList_SET_ITEM(found, i, sum);
    }
    PyMem_Free(sums);
    Py_XDECREF(all);
    return found;
}

static PyMethodDef module_methods[] = {
    {"checksums", checksums, METH_O, "Give the CRC-32 of each of many bytes."},
    {"set_clock", set_clock, METH_O, "For tests: ask this for the time; None: the clock."},
    {NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_accelerator", "The fast half of pvti.", -1, module_methods,
};

PyMODINIT_FUNC PyInit__accelerator(void)
{
    fill_crc_table();
    name_track = PyUnicode_InternFromString("track");
    name_current = PyUnicode_InternFromString("current");
    name_asyncio = PyUnicode_InternFromString("asyncio");
    name_found = PyUnicode_InternFromString("pvti._accelerator.found");
    PyObject *made = PyModule_Create(&module);
    if (made == NULL || name_track == NULL || name_current == NULL || name_asyncio == NULL ||
        name_found == NULL || PyModule_AddType(made, &ChannelType) < 0 ||
        PyModule_AddType(made, &SpansType) < 0 || PyModule_AddType(made, &SpanType) < 0 ||
        PyModule_AddIntConstant(made, "INTERFACE", INTERFACE) < 0)
        Py_CLEAR(made);
    return made;
}
