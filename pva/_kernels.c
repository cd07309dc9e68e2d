/* Passes that NumPy and msgspec do in several: the text of Chrome traces, lists of numbers in
   JSON, checksums, records of host traces, nesting, and the levels and columns of timelines.

   Built where there is a compiler; without it pva is slower and does the same. What is not as most
   traces have it is not taken: the caller gets None and looks at that text with the pure path. No
   pointer is kept when a call is over; other threads run while one of the passes does. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define INTERFACE 12                        /* as in kernels.py */
#define COMPLETE 0                          /* phases, as in chrome_events.py */
#define INSTANT 3
#define COUNTER 7
#define METADATA 8
#define UNKNOWN 255
#define DEEPEST 60                          /* lists and objects in each other, of one event */
#define PROBES 16                           /* places at which a pair of texts is looked for */
#define TIME_LIMIT ((double)(1LL << 61) / 1000)

/* ---- columns that grow ---- */

typedef struct { char *data; size_t size, room; } Bytes;

/* Make room for `more` bytes; give where they begin, NULL where the memory is out. */
static char *extend(Bytes *bytes, size_t more)
{
    if (bytes->size + more > bytes->room) {
        size_t room = (bytes->size + more) * 2 + 4096;
        char *data = realloc(bytes->data, room);
        if (data == NULL)
            return NULL;
        bytes->data = data;
        bytes->room = room;
    }
    bytes->size += more;
    return bytes->data + bytes->size - more;
}

static int put(Bytes *bytes, const void *from, size_t size)
{
    char *to = extend(bytes, size);
    if (to == NULL)
        return 0;
    memcpy(to, from, size);
    return 1;
}

static int put_byte(Bytes *bytes, uint8_t value) { return put(bytes, &value, sizeof value); }
static int put_int(Bytes *bytes, int32_t value) { return put(bytes, &value, sizeof value); }
static int put_long(Bytes *bytes, int64_t value) { return put(bytes, &value, sizeof value); }

/* ---- where the elements of an array end ---- */

enum { PLAIN, QUOTE, ESCAPE, OPEN, CLOSE };
static const uint8_t KIND[256] = {
    ['"'] = QUOTE, ['\\'] = ESCAPE, ['{'] = OPEN, ['['] = OPEN, ['}'] = CLOSE, [']'] = CLOSE};

/* Find where elements end; give where the array does, -1 for not here, -2 where memory is out. */
static Py_ssize_t scan_text(const uint8_t *text, Py_ssize_t size, Bytes *ends)
{
    int64_t depth = 0;
    for (Py_ssize_t i = 0; i < size; i++) {
        switch (KIND[text[i]]) {
        case QUOTE:
            for (i++; i < size && text[i] != '"'; i++)
                i += text[i] == '\\';
            break;
        case ESCAPE:  /* outside of a text: what it is before counts, unless that is one of two */
            i += i + 1 < size && (text[i + 1] == '"' || text[i + 1] == '\\');
            break;
        case OPEN:
            depth++;
            break;
        case CLOSE:
            if (--depth < 0)
                return i;
            if (depth == 0 && !put_int(ends, (int32_t)(i + 1)))
                return -2;
        }
    }
    return -1;
}

static PyObject *taken(Bytes *bytes)
{
    /* Where memory is short, Python 3.11 prints an error of its own for one that begins with bytes. */
    PyObject *found = PyByteArray_FromStringAndSize(NULL, 0);
    if (found != NULL && PyByteArray_Resize(found, (Py_ssize_t)bytes->size) < 0)
        Py_CLEAR(found);
    if (found != NULL && bytes->size > 0)
        memcpy(PyByteArray_AS_STRING(found), bytes->data, bytes->size);
    free(bytes->data);
    bytes->data = NULL;
    return found;
}

/* scan(text): where elements end, as int32, and where the array does */
static PyObject *scan(PyObject *module, PyObject *text)
{
    Py_buffer view;
    Bytes ends = {0};
    if (PyObject_GetBuffer(text, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    Py_ssize_t closed = -2;
    if (view.len < INT32_MAX) {
        Py_BEGIN_ALLOW_THREADS
        closed = scan_text(view.buf, view.len, &ends);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&view);
    if (closed == -2) {
        free(ends.data);
        return PyErr_NoMemory();
    }
    return Py_BuildValue("Nn", taken(&ends), closed);
}

/* ---- values of JSON ---- */

/* A text being read. What is wrong, or not as most have it, sets `at` to NULL. */
typedef struct { const uint8_t *at, *end; } Reader;
typedef struct { const uint8_t *first; size_t size; } Span;

static inline uint8_t next(const Reader *reader)
{
    return reader->at != NULL && reader->at < reader->end ? *reader->at : 0;
}

static inline uint8_t after_blanks(Reader *reader)
{
    uint8_t found;
    while ((found = next(reader)) == ' ' || found == '\n' || found == '\r' || found == '\t')
        reader->at++;
    return found;
}

static inline void skip(Reader *reader, uint8_t letter)
{
    reader->at = after_blanks(reader) == letter && letter ? reader->at + 1 : NULL;
}

enum { DIRECT = 0, ENDS, ESCAPED, CONTROL };
static const uint8_t LETTER[256] = {
    ['"'] = ENDS, ['\\'] = ESCAPED,
    [0] = CONTROL, [1] = CONTROL, [2] = CONTROL, [3] = CONTROL, [4] = CONTROL, [5] = CONTROL,
    [6] = CONTROL, [7] = CONTROL, [8] = CONTROL, [9] = CONTROL, [10] = CONTROL, [11] = CONTROL,
    [12] = CONTROL, [13] = CONTROL, [14] = CONTROL, [15] = CONTROL, [16] = CONTROL,
    [17] = CONTROL, [18] = CONTROL, [19] = CONTROL, [20] = CONTROL, [21] = CONTROL,
    [22] = CONTROL, [23] = CONTROL, [24] = CONTROL, [25] = CONTROL, [26] = CONTROL,
    [27] = CONTROL, [28] = CONTROL, [29] = CONTROL, [30] = CONTROL, [31] = CONTROL};

/* Read the four digits behind a backslash and u; -1 where there are none. */
static int unit_at(const Reader *reader)
{
    int found = 0;
    if (reader->end - reader->at < 6 || reader->at[0] != '\\' || reader->at[1] != 'u')
        return -1;
    for (int i = 2; i < 6; i++) {
        int letter = reader->at[i] | 32;
        if (reader->at[i] >= '0' && reader->at[i] <= '9')
            found = found * 16 + (reader->at[i] - '0');
        else if (letter >= 'a' && letter <= 'f')
            found = found * 16 + (letter - 'a' + 10);
        else
            return -1;
    }
    return found;
}

/* Go behind a backslash and what belongs to it; two halves of a letter belong together. */
static void escape_at(Reader *reader)
{
    uint8_t letter = reader->end - reader->at < 2 ? 0 : reader->at[1];
    if (letter && strchr("\"\\/bfnrt", letter)) {
        reader->at += 2;
        return;
    }
    int unit = unit_at(reader);
    reader->at += 6;
    if (unit >= 0xD800 && unit < 0xDC00) {
        unit = unit_at(reader) - 0xDC00;
        reader->at += 6;
        unit = unit < 0 || unit >= 0x400 ? -1 : 0;
    }
    if (unit < 0 || (unit >= 0xDC00 && unit < 0xE000))
        reader->at = NULL;
}

/* Go behind a text, whose quotes belong to what is given. */
static Span text_at(Reader *reader)
{
    Span found = {reader->at, 0};
    if (next(reader) != '"')
        goto other;
    for (reader->at++;;) {
        while (reader->at < reader->end && LETTER[*reader->at] == DIRECT)
            reader->at++;
        if (next(reader) == '"')
            break;
        if (next(reader) != '\\')
            goto other;
        escape_at(reader);
        if (reader->at == NULL)
            return found;
    }
    found.size = (size_t)(++reader->at - found.first);
    return found;
other:
    reader->at = NULL;
    return found;
}

typedef struct { uint64_t digits; int count, tens; int negative; } Decimal;

static int is_digit(uint8_t letter) { return letter >= '0' && letter <= '9'; }

static void digits_of(Reader *reader, Decimal *number)
{
    if (!is_digit(next(reader))) {
        reader->at = NULL;
        return;
    }
    for (; is_digit(next(reader)); reader->at++) {
        if (number->digits || *reader->at != '0')
            number->count++;
        if (number->count < 20)
            number->digits = number->digits * 10 + (*reader->at - '0');
    }
}

/* Read a number; of more than 19 digits the rest is not in `digits`. */
static Decimal decimal_at(Reader *reader)
{
    Decimal number = {0};
    number.negative = next(reader) == '-';
    reader->at += number.negative;
    if (next(reader) == '0' && reader->end - reader->at > 1 && is_digit(reader->at[1]))
        reader->at = NULL;
    digits_of(reader, &number);
    if (next(reader) == '.') {
        const uint8_t *point = ++reader->at;
        digits_of(reader, &number);
        if (reader->at != NULL)
            number.tens = -(int)(reader->at - point);
    }
    if ((next(reader) | 32) == 'e') {
        reader->at++;
        int down = next(reader) == '-', tens = 0;
        reader->at += down || next(reader) == '+';
        const uint8_t *first = reader->at;
        for (; is_digit(next(reader)); reader->at++)
            tens = tens < 10000 ? tens * 10 + (*reader->at - '0') : tens;
        if (reader->at == first)
            reader->at = NULL;
        number.tens += down ? -tens : tens;
    }
    return number;
}

static const double TEN[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
                             1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* Divide by a power of ten, rounded to the nearest as IEEE 754 has it; digits are 2**53 or more. */
static double divided(uint64_t digits, int tens)
{
#ifdef __SIZEOF_INT128__
    uint64_t by = 1;
    for (int i = 0; i < tens; i++)
        by *= 10;
    unsigned __int128 all = (unsigned __int128)digits << 64, found = all / by;
    int sticky = all % by != 0;
    uint64_t high = (uint64_t)(found >> 64);
    int drop = (high ? 128 - __builtin_clzll(high) : 64 - __builtin_clzll((uint64_t)found)) - 53;
    uint64_t kept = (uint64_t)(found >> drop);
    unsigned __int128 half = (unsigned __int128)1 << (drop - 1);
    unsigned __int128 rest = found & ((half << 1) - 1);
    kept += rest > half || (rest == half && (sticky || (kept & 1)));
    return ldexp((double)kept, drop - 64);
#else
    return NAN;
#endif
}

/* Give the nearest double, NAN where that is not plain here. */
static double double_of(const Decimal *number)
{
    double found = NAN;
    int tens = number->tens;
    if (number->count > 19)
        return NAN;
    if (tens == 0 || number->digits == 0)
        found = (double)number->digits;
    else if (number->digits <= 1ULL << 53 && tens >= -22 && tens <= 22)
        found = tens < 0 ? (double)number->digits / TEN[-tens] : (double)number->digits * TEN[tens];
    else if (tens < 0 && tens >= -19)
        found = divided(number->digits, -tens);
    return number->negative ? -found : found;
}

static void literal_at(Reader *reader)
{
    static const char *const known[] = {"null", "true", "false"};
    for (int i = 0; i < 3; i++) {
        size_t size = strlen(known[i]);
        if ((size_t)(reader->end - reader->at) >= size && !memcmp(reader->at, known[i], size)) {
            reader->at += size;
            return;
        }
    }
    reader->at = NULL;
}

static void scalar_at(Reader *reader)
{
    uint8_t letter = next(reader);
    if (letter == '"')
        text_at(reader);
    else if (letter == '-' || is_digit(letter))
        decimal_at(reader);
    else if (letter)
        literal_at(reader);
    else
        reader->at = NULL;
}

/* Go behind a value of any kind. */
static Span value_at(Reader *reader)
{
    uint64_t objects = 0;                   /* a bit a level: whether that is an object */
    int depth = 0, letter = after_blanks(reader);
    Span found = {reader->at, 0};
    for (;;) {
        if (letter == '{' || letter == '[') {
            if (++depth > DEEPEST)
                goto other;
            objects = objects << 1 | (letter == '{');
            reader->at++;
            letter = after_blanks(reader);
            if (letter == (objects & 1 ? '}' : ']'))
                goto closed;
        }
        else {
            scalar_at(reader);
            goto behind;
        }
        goto member;
closed:
        reader->at++;
        objects >>= 1;
        depth--;
behind:
        if (depth == 0)
            break;
        letter = after_blanks(reader);
        if (letter == (objects & 1 ? '}' : ']'))
            goto closed;
        skip(reader, ',');
        letter = after_blanks(reader);
member:
        if (objects & 1) {
            if (reader->at != NULL)
                text_at(reader);
            skip(reader, ':');
            letter = after_blanks(reader);
        }
        if (reader->at == NULL)
            goto other;
    }
    found.size = reader->at ? (size_t)(reader->at - found.first) : 0;
    return found;
other:
    reader->at = NULL;
    return found;
}

/* ---- pairs of texts, each numbered once ---- */

typedef struct { Span first, second; } Pair;
typedef struct { Bytes pairs, table, json; int32_t count, last; } Pairs;

static uint64_t hashed(const Pair *pair)
{
    uint64_t hash = pair->first.size * 31 + pair->second.size, word;
    const Span *spans[] = {&pair->first, &pair->second};
    for (int i = 0; i < 2; i++) {
        size_t place = 0, size = spans[i]->size;
        for (; place + 8 <= size; place += 8) {
            memcpy(&word, spans[i]->first + place, 8);
            hash = (hash ^ word) * 0x9E3779B97F4A7C15ULL;
            hash ^= hash >> 29;
        }
        for (; place < size; place++)
            hash = (hash ^ spans[i]->first[place]) * 0x100000001B3ULL;
    }
    return hash ^ hash >> 32;
}

static int equal(const Pair *one, const Pair *other)
{
    return one->first.size == other->first.size && one->second.size == other->second.size
        && !memcmp(one->first.first, other->first.first, one->first.size)
        && !memcmp(one->second.first, other->second.first, one->second.size);
}

/* Make the table twice as large; 0 where the memory is out. */
static int grow(Pairs *known)
{
    size_t size = known->table.size ? 2 * known->table.size : 256 * sizeof(int32_t);
    size_t mask = size / sizeof(int32_t) - 1;
    int32_t *table = malloc(size);
    if (table == NULL)
        return 0;
    memset(table, -1, size);
    for (int32_t number = 0; number < known->count; number++) {
        uint64_t hash = hashed((Pair *)known->pairs.data + number);
        for (int probe = 0; probe < PROBES; probe++)
            if (table[(hash + probe) & mask] < 0) {
                table[(hash + probe) & mask] = number;
                break;
            }
    }
    free(known->table.data);
    known->table = (Bytes){(char *)table, size, size};
    return 1;
}

/* Number a pair, in order of the first of it; one that is hard to find gets another number. */
static int32_t numbered(Pairs *known, const Pair *pair)
{
    if (known->count && equal((Pair *)known->pairs.data + known->last, pair))
        return known->last;
    if (2 * (size_t)known->count >= known->table.size / sizeof(int32_t) && !grow(known))
        return -1;
    size_t mask = known->table.size / sizeof(int32_t) - 1;
    int32_t *table = (int32_t *)known->table.data, *place = NULL;
    uint64_t hash = hashed(pair);
    for (int probe = 0; probe < PROBES && place == NULL; probe++) {
        int32_t *here = &table[(hash + probe) & mask];
        if (*here < 0)
            place = here;
        else if (equal((Pair *)known->pairs.data + *here, pair))
            return known->last = *here;
    }
    if (!put(&known->pairs, pair, sizeof *pair)
        || !put(&known->json, known->count ? "," : "[", 1)
        || !put(&known->json, pair->first.first, pair->first.size) || !put(&known->json, ",", 1)
        || !put(&known->json, pair->second.first, pair->second.size))
        return -1;
    if (place != NULL)
        *place = known->count;
    return known->last = known->count++;
}

/* ---- events ---- */

typedef struct { Span ph, pid, tid, name, cat, args; double ts, dur; } Event;
typedef struct {
    Bytes phase, time, duration, lane, label, told, sizes, texts, others;
    Pairs lanes, labels;
} Events;

#define KEY(text) (key.size == sizeof text + 1 && !memcmp(key.first + 1, text, sizeof text - 1))

/* Read a plain number. */
static double number_at(Reader *reader)
{
    uint8_t letter = after_blanks(reader);
    if (letter != '-' && !is_digit(letter)) {
        reader->at = NULL;
        return NAN;
    }
    Decimal number = decimal_at(reader);
    double found = reader->at == NULL ? NAN : double_of(&number);
    if (isnan(found))
        reader->at = NULL;
    return found;
}

/* Go behind a plain number, or a text of letters alone. */
static void identity_at(Reader *reader)
{
    if (after_blanks(reader) != '"') {
        number_at(reader);
        return;
    }
    Span text = text_at(reader);
    for (size_t i = 0; i < text.size; i++)
        if (text.first[i] == '\\' || text.first[i] > 127)
            reader->at = NULL;
}

static Span scalar_span(Reader *reader)
{
    after_blanks(reader);
    Span found = {reader->at, 0};
    scalar_at(reader);
    if (reader->at != NULL)
        found.size = (size_t)(reader->at - found.first);
    return found;
}

/* Read the value of a key. */
static void field_at(Reader *reader, Span key, Event *event)
{
    if (KEY("ts"))
        event->ts = number_at(reader);
    else if (KEY("dur"))
        event->dur = number_at(reader);
    else if (KEY("ph"))
        event->ph = value_at(reader);
    else if (KEY("pid"))
        event->pid = scalar_span(reader);
    else if (KEY("tid"))
        event->tid = scalar_span(reader);
    else if (KEY("name"))
        event->name = (after_blanks(reader), text_at(reader));
    else if (KEY("cat"))
        event->cat = (after_blanks(reader), text_at(reader));
    else if (KEY("args"))
        event->args = value_at(reader);
    else if (KEY("id") || KEY("id2") || KEY("scope"))
        identity_at(reader);
    else
        value_at(reader);
}

#define CONSTANT(text) {(const uint8_t *)text, sizeof text - 1}

/* Read an object with the fields of an event. */
static Event event_at(Reader *reader)
{
    Event event = {.pid = CONSTANT("0"), .tid = CONSTANT("0"), .name = CONSTANT("\"\""),
                   .cat = CONSTANT("\"\""), .ts = NAN, .dur = NAN};
    skip(reader, '{');
    if (after_blanks(reader) == '}') {
        reader->at = NULL;
        return event;
    }
    while (reader->at != NULL) {
        after_blanks(reader);
        Span key = reader->at ? text_at(reader) : (Span){0};
        skip(reader, ':');
        if (reader->at == NULL)
            return event;
        for (size_t i = 0; i < key.size; i++)
            if (key.first[i] == '\\' || key.first[i] > 127) {
                reader->at = NULL;
                return event;
            }
        if (after_blanks(reader))
            field_at(reader, key, &event);
        else
            reader->at = NULL;
        if (after_blanks(reader) == '}') {
            reader->at++;
            return event;
        }
        skip(reader, ',');
    }
    return event;
}

static int64_t nanoseconds(double microseconds)
{
    double whole = floor(microseconds);     /* as in chrome_events._times */
    return (int64_t)whole * 1000 + (int64_t)rint((microseconds - whole) * 1000);
}

/* Take in an event that is shown; 0 where the memory is out. */
static int keep(Events *found, const Event *event, uint8_t phase)
{
    Pair lane = {event->pid, event->tid}, label = {event->cat, event->name};
    int32_t of_lane = numbered(&found->lanes, &lane), of_label = numbered(&found->labels, &label);
    if (of_lane < 0 || of_label < 0)
        return 0;
    if (event->args.size > 2
        && (!put_int(&found->told, (int32_t)found->phase.size)
            || !put_int(&found->sizes, (int32_t)event->args.size)
            || !put(&found->texts, event->args.first, event->args.size)))
        return 0;
    return put_byte(&found->phase, phase) && put_long(&found->time, nanoseconds(event->ts))
        && put_int(&found->lane, of_lane) && put_int(&found->label, of_label)
        && (phase != COMPLETE || put_long(&found->duration, nanoseconds(event->dur)));
}

/* Give 1 when all events of a text are taken, 0 when it is for others, -1 where memory is out. */
static int events_of(Reader reader, const uint8_t *phases, Events *found)
{
    while (after_blanks(&reader) == ',')
        reader.at++;
    while (after_blanks(&reader)) {
        const uint8_t *first = reader.at;
        Event event = event_at(&reader);
        if (reader.at == NULL || event.ph.size != 3 || event.ph.first[0] != '"')
            return 0;
        uint8_t phase = phases[event.ph.first[1]];
        if (phase == UNKNOWN)
            return 0;
        if (phase < METADATA && !(fabs(event.ts) < TIME_LIMIT))  /* not told: NAN */
            return 0;
        if (phase == COMPLETE && !(event.dur >= 0 && event.dur < TIME_LIMIT))
            return 0;
        if (phase < COUNTER && !keep(found, &event, phase))
            return -1;
        if (phase > INSTANT) { /* what else is told of them is for others */
            Span whole = {first, (size_t)(reader.at - first)};
            if (!put(&found->others, found->others.size ? "," : "[", 1)
                || !put(&found->others, whole.first, whole.size))
                return -1;
        }
        if (after_blanks(&reader)) {
            skip(&reader, ',');
            if (!after_blanks(&reader))
                return 0;
        }
    }
    return reader.at == reader.end;
}

static PyObject *all_of(Events *found)
{
    Bytes *columns[] = {
        &found->phase, &found->time, &found->duration, &found->lane, &found->label, &found->told,
        &found->sizes, &found->texts, &found->lanes.json, &found->labels.json, &found->others};
    enum { COUNT = sizeof columns / sizeof *columns };
    PyObject *tuple = PyTuple_New(COUNT);
    for (int i = 0; i < COUNT && tuple != NULL; i++) {
        if (i >= COUNT - 3 && columns[i]->size && !put(columns[i], "]", 1)) {
            Py_DECREF(tuple);
            return PyErr_NoMemory();
        }
        PyObject *column = taken(columns[i]);
        if (column == NULL) {
            Py_DECREF(tuple);
            return NULL;
        }
        PyTuple_SET_ITEM(tuple, i, column);
    }
    return tuple;
}

static void let_go(Events *found)
{
    Bytes *columns[] = {
        &found->phase, &found->time, &found->duration, &found->lane, &found->label, &found->told,
        &found->sizes, &found->texts, &found->others, &found->lanes.json, &found->lanes.pairs,
        &found->lanes.table, &found->labels.json, &found->labels.pairs, &found->labels.table};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        free(columns[i]->data);
}

/* events(text, phases): the columns of the events of a text, None where it is not plain.

   `phases` has a number for each letter. The columns are those of `all_of`. */
static PyObject *events(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    Py_buffer text, phases;
    Events found = {0};
    PyObject *result = NULL;
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "a text and the numbers of phases are needed");
        return NULL;
    }
    if (PyObject_GetBuffer(given[0], &text, PyBUF_SIMPLE) < 0)
        return NULL;
    if (PyObject_GetBuffer(given[1], &phases, PyBUF_SIMPLE) < 0) {
        PyBuffer_Release(&text);
        return NULL;
    }
    int state = 0;
    if (phases.len == 256 && text.len < INT32_MAX) {
        Reader reader = {text.buf, (const uint8_t *)text.buf + text.len};
        Py_BEGIN_ALLOW_THREADS
        state = events_of(reader, phases.buf, &found);
        Py_END_ALLOW_THREADS
    }
    if (state > 0)
        result = all_of(&found);
    else if (state < 0)
        PyErr_NoMemory();
    else
        result = Py_NewRef(Py_None);
    let_go(&found);
    PyBuffer_Release(&phases);
    PyBuffer_Release(&text);
    return result;
}

/* ---- lists of whole numbers ---- */

enum { AT_ONCE = 512,                       /* numbers for which room is made */
       LONG_ROW = 1 << 23 };                /* bytes of text of a row, which is held at once */

static inline const uint8_t *behind_blanks(const uint8_t *at, const uint8_t *end)
{
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
        at++;
    return at;
}

/* Read whole numbers with commas between them, up to the end of their list or some bytes on.

   Give where that is: behind a bracket or comma; NULL where there is something else, or a number
   that is at a limit of 64 bits. */
static const uint8_t *whole_numbers(const uint8_t *at, const uint8_t *end, Py_ssize_t most, Bytes *found)
{
    const uint8_t *begin = at;
    for (;;) {
        int64_t *to = (int64_t *)extend(found, AT_ONCE * sizeof *to);
        if (to == NULL)
            return NULL;
        for (int64_t *last = to + AT_ONCE; to < last; to++) {
            at = behind_blanks(at, end);
            int negative = at < end && *at == '-';
            const uint8_t *first = at += negative;
            uint64_t digits = 0;
            for (; at < end && is_digit(*at) && at - first < 19; at++)
                digits = digits * 10 + (*at - '0');
            if (at == first || digits >= INT64_MAX || (*first == '0' && at - first > 1))
                return NULL;
            *to = negative ? -(int64_t)digits : (int64_t)digits;
            at = behind_blanks(at, end);
            if (at == end || (*at != ',' && *at != ']'))
                return NULL;
            if (*at++ == ']' || at - begin >= most) {
                found->size -= (size_t)(last - to - 1) * sizeof *to;
                return at;
            }
        }
    }
}

/* Read some of a list of numbers, or of rows of `width` of them (0: as the first one, -1: of
   numbers alone), until they are `most` bytes of text. 1 when there is more, 2 at the end of the
   list, 0 when it is for others. */
static int numbers_of(Reader *reader, Py_ssize_t most, Py_ssize_t *width, Bytes *found)
{
    const uint8_t *first = reader->at;
    if (*width == 0 && after_blanks(reader) != '[')
        *width = -1;
    for (;;) {
        if (*width < 0)
            reader->at = whole_numbers(reader->at, reader->end, most, found);
        else if (after_blanks(reader) == '[') {
            size_t before = found->size;
            reader->at = whole_numbers(reader->at + 1, reader->end, LONG_ROW, found);
            Py_ssize_t count = (Py_ssize_t)((found->size - before) / sizeof(int64_t));
            *width = *width ? *width : count;
            if (reader->at == NULL || reader->at[-1] != ']' || count != *width)
                return 0;
            uint8_t letter = after_blanks(reader);
            if (letter != ',' && letter != ']')
                return 0;
            reader->at++;
        }
        else
            return 0;
        if (reader->at == NULL)
            return 0;
        if (reader->at[-1] == ']')
            return after_blanks(reader) || reader->at != reader->end ? 0 : 2;
        if (reader->at - first >= most)
            return 1;
    }
}

/* numbers(text, begin, most, width): some of a list, as int64; width; where there is more, or -1

   None where that is for others. `begin` is behind the bracket or a comma. */
static PyObject *numbers(PyObject *module, PyObject *const *given, Py_ssize_t arguments)
{
    Py_buffer text;
    Bytes found = {0};
    if (arguments != 4) {
        PyErr_SetString(PyExc_TypeError, "a text, a place in it, a size and a width are needed");
        return NULL;
    }
    Py_ssize_t begin = PyLong_AsSsize_t(given[1]), most = PyLong_AsSsize_t(given[2]);
    Py_ssize_t width = PyLong_AsSsize_t(given[3]);
    if (PyErr_Occurred() || PyObject_GetBuffer(given[0], &text, PyBUF_SIMPLE) < 0)
        return NULL;
    int state = 0;
    Reader reader = {text.buf, (const uint8_t *)text.buf + text.len};
    if (begin >= 0 && begin <= text.len) {
        reader.at += begin;
        Py_BEGIN_ALLOW_THREADS
        state = numbers_of(&reader, most, &width, &found);
        Py_END_ALLOW_THREADS
    }
    Py_ssize_t next_one = state == 1 ? reader.at - (const uint8_t *)text.buf : -1;
    PyBuffer_Release(&text);
    if (state)
        return Py_BuildValue("Nnn", taken(&found), width, next_one);
    free(found.data);
    Py_RETURN_NONE;
}

/* ---- how events lie in each other ---- */

typedef struct { Py_buffer view; char *first; Py_ssize_t count, step; } Column;
typedef struct { int64_t end, until; int32_t row; } Open_span;
typedef struct {
    Column begin, end, label;               /* those of events, in the order of their begin */
    int32_t *depth, *parent;                /* of events, or none */
    int64_t *own, *count, *total;           /* `own` of events, or all of labels */
    Py_ssize_t labels;
} Sweep;

static int64_t less(int64_t one, int64_t other) { return (int64_t)((uint64_t)one - (uint64_t)other); }

static inline void add(int64_t *sum, int64_t more)
{
    *sum = (int64_t)((uint64_t)*sum + (uint64_t)more);
}

static inline int64_t long_at(const Column *column, Py_ssize_t row)
{
    int64_t value;
    memcpy(&value, column->first + row * column->step, sizeof value);
    return value;
}

static inline int32_t int_at(const Column *column, Py_ssize_t row)
{
    int32_t value;
    memcpy(&value, column->first + row * column->step, sizeof value);
    return value;
}

static inline void on_top(const Sweep *sweep, const Open_span *span, int64_t since, int64_t until)
{
    if (until > since)
        add(&sweep->own[sweep->labels ? int_at(&sweep->label, span->row) : span->row],
            less(until, since));
}

/* Sweep over events: the last begun of those open is around the next one, and on top until then.

   Give 1 where each holds what is in it, 2 where not all do; 0 where more than `most` are open, or
   a label is none; -1 where memory is out. Of an event that ended below others nothing is left. */
static int swept(Sweep *sweep, Py_ssize_t most)
{
    Bytes open = {0};
    Py_ssize_t count = sweep->begin.count, top = 0;
    int64_t now = 0;
    int state = 1;
    for (Py_ssize_t row = 0; row < count; row++) {
        int64_t begin = long_at(&sweep->begin, row), end = long_at(&sweep->end, row);
        /* As in nesting.py: without a duration it is around what begins with it. */
        Open_span new = {end, end > begin ? end : begin + (begin < INT64_MAX), (int32_t)row};
        Open_span *spans = (Open_span *)open.data;
        while (top && spans[top - 1].until <= begin) {
            top--;
            on_top(sweep, &spans[top], now, spans[top].end);
            now = spans[top].end > now ? spans[top].end : now;
        }
        if (top)
            on_top(sweep, &spans[top - 1], now, begin);
        now = begin;
        int32_t around = top ? spans[top - 1].row : -1;
        if (top && spans[top - 1].until < new.until)
            state = 2;
        if (sweep->depth != NULL) {
            sweep->parent[row] = around;
            sweep->depth[row] = top ? sweep->depth[around] + 1 : 0;
        }
        if (sweep->labels) {
            int32_t label = int_at(&sweep->label, row);
            if (label < 0 || label >= sweep->labels) {
                state = 0;
                break;
            }
            add(&sweep->count[label], 1);
            add(&sweep->total[label], less(end, begin));
        }
        else
            sweep->own[row] = 0;
        if (++top > most) {
            state = 0;
            break;
        }
        if ((size_t)top * sizeof new > open.room) {
            open.size = (size_t)(top - 1) * sizeof new;
            if (extend(&open, sizeof new) == NULL) {
                state = -1;
                break;
            }
            spans = (Open_span *)open.data;
        }
        spans[top - 1] = new;
    }
    for (const Open_span *spans = (Open_span *)open.data; state > 0 && top;) {
        top--;
        on_top(sweep, &spans[top], now, spans[top].end);
        now = spans[top].end > now ? spans[top].end : now;
    }
    free(open.data);
    return state;
}

/* Take a row of numbers of a size; of those to be written, one without gaps. 0 where it is none. */
static int column_of(PyObject *given, Column *column, Py_ssize_t size, int is_written)
{
    int flags = is_written ? PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE : PyBUF_STRIDED_RO;
    if (PyObject_GetBuffer(given, &column->view, flags) < 0) {
        PyErr_Clear();
        column->view.obj = NULL;
        return 0;
    }
    column->first = column->view.buf;
    column->count = column->view.ndim == 1 ? column->view.shape[0] : -1;
    column->step = column->view.ndim == 1 ? column->view.strides[0] : 0;
    return column->view.ndim == 1 && column->view.itemsize == size;
}

static PyObject *answer(int state)
{
    if (state < 0)
        return PyErr_NoMemory();
    if (state == 0)
        Py_RETURN_NONE;
    return PyBool_FromLong(state == 1);
}

/* ---- checksums ---- */

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define HAS_FOLDS (__builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1"))

/* Powers of x modulo the polynomial of CRC-32, bits turned round, by which 128 bits go forward:
   V. Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction",
   Intel, 2009. By 512 bits x^544 and x^480, by 128 bits x^160 and x^96. */
static const uint64_t BY_512[2] = {0x154442bd4, 0x1c6e41596}, BY_128[2] = {0x1751997d0, 0x0ccaa009e};

__attribute__((target("pclmul,sse4.1")))
static inline __m128i folded(__m128i state, __m128i by, const uint8_t *more)
{
    __m128i low = _mm_clmulepi64_si128(state, by, 0x00), high = _mm_clmulepi64_si128(state, by, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), _mm_loadu_si128((const __m128i *)more));
}

/* Reduce a multiple of 16 bytes, 64 or more, to 16 of the same remainder. */
__attribute__((target("pclmul,sse4.1")))
static void fold(const uint8_t *data, size_t size, uint32_t start, uint8_t *left)
{
    const __m128i far = _mm_loadu_si128((const __m128i *)BY_512);
    const __m128i near = _mm_loadu_si128((const __m128i *)BY_128);
    __m128i lane[4];
    for (int i = 0; i < 4; i++)
        lane[i] = _mm_loadu_si128((const __m128i *)data + i);
    lane[0] = _mm_xor_si128(lane[0], _mm_cvtsi32_si128((int)start));
    for (data += 64, size -= 64; size >= 64; data += 64, size -= 64)
        for (int i = 0; i < 4; i++)
            lane[i] = folded(lane[i], far, data + 16 * i);
    uint8_t next[16];
    for (int i = 1; i < 4; i++) {
        _mm_storeu_si128((__m128i *)next, lane[i]);
        lane[i] = folded(lane[i - 1], near, next);
    }
    for (; size >= 16; data += 16, size -= 16)
        lane[3] = folded(lane[3], near, data);
    _mm_storeu_si128((__m128i *)left, lane[3]);
}
#else
#define HAS_FOLDS 0
static void fold(const uint8_t *data, size_t size, uint32_t start, uint8_t *left)
{
    (void)data, (void)size, (void)start, (void)left;
}
#endif

enum { FOLDED = 1024 };                     /* bytes; with fewer zlib is as fast */

/* Go on with a CRC-32 over some bytes, bit by bit. */
static uint32_t crc_of(uint32_t crc, const uint8_t *data, size_t size)
{
    for (size_t at = 0; at < size; at++) {
        crc ^= data[at];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320U : 0);
    }
    return crc;
}

/* crc32(data): as that of zlib; None where the processor does not multiply without carries, and of
   data so short that zlib is as fast. */
static PyObject *crc32(PyObject *module, PyObject *given)
{
    Py_buffer data;
    if (PyObject_GetBuffer(given, &data, PyBUF_SIMPLE) < 0)
        return NULL;
    uint32_t crc = UINT32_MAX;
    int fit = data.len >= FOLDED && HAS_FOLDS;
    if (fit) {
        Py_BEGIN_ALLOW_THREADS
        uint8_t left[16];
        size_t size = (size_t)data.len & ~(size_t)15;
        fold(data.buf, size, crc, left);
        crc = ~crc_of(crc_of(0, left, sizeof left), (const uint8_t *)data.buf + size, data.len - size);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&data);
    if (!fit)
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLong(crc);
}

/* ---- events in the order of their begin ---- */

/* Turn events in the order of their end into that of their begin, of equal begins the last first.

   What is inside an event ended before it: it goes in front of all that began no earlier, a list
   that is linked in its order. 1 when done, 0 when events overlap, -1 when the memory is out. */
static int forward(const Column *begin, int64_t *order)
{
    Py_ssize_t count = begin->count, open = 0;
    int32_t *next = malloc(3 * sizeof *next * (count ? count : 1)), *last, *heads;
    if (next == NULL)
        return -1;
    last = next + count, heads = last + count;
    int fit = 1;
    for (Py_ssize_t event = 0; event < count && fit; event++) {
        int64_t since = long_at(begin, event);
        int32_t after = -1, end = (int32_t)event;
        for (; open && long_at(begin, heads[open - 1]) >= since; open--) {
            int32_t inside = heads[open - 1];
            if (after < 0)
                end = last[inside];
            else
                next[last[inside]] = after;
            after = inside;
        }
        fit = !open || long_at(begin, last[heads[open - 1]]) < since;
        next[event] = after;
        last[event] = end;
        heads[open++] = (int32_t)event;
    }
    for (Py_ssize_t head = 0, row = 0; head < open && fit; head++)
        for (int32_t event = heads[head];; event = next[event]) {
            order[row++] = event;
            if (event == last[heads[head]])
                break;
        }
    free(next);
    return fit;
}

/* forward(begin, order): fill `order` and give True; None where events overlap, or columns do not
   fit. */
static PyObject *forward_of(PyObject *module, PyObject *const *given, Py_ssize_t arguments)
{
    Column begin = {0}, order = {0};
    if (arguments != 2) {
        PyErr_SetString(PyExc_TypeError, "begins and a column for the order are needed");
        return NULL;
    }
    int state = column_of(given[0], &begin, 8, 0) && column_of(given[1], &order, 8, 1)
        && begin.count == order.count && begin.count < INT32_MAX;
    if (state) {
        Py_BEGIN_ALLOW_THREADS
        state = forward(&begin, (int64_t *)order.first);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&begin.view);
    PyBuffer_Release(&order.view);
    return answer(state);
}

/* ---- records of a trace ---- */

enum { RECORD = 16, LABEL_BITS = 28 };      /* bytes and bits, as in pvti/schema.py */
enum { LEAST, MOST, LOWEST, HIGHEST, KIND_OF_ALL, FACTS };

/* Spread the records of one chunk to columns, and note its facts in every `step`-th place. */
static void spread(const uint8_t *from, Py_ssize_t count, int64_t *begin, int64_t *end,
                   int32_t *label, uint8_t *kind, int64_t *facts, Py_ssize_t step)
{
    int64_t least = INT64_MAX, most = INT64_MIN;
    uint32_t lowest = UINT32_MAX, highest = 0, latest_kind = 0;
    for (Py_ssize_t row = 0; row < count; row++, from += RECORD) {
        uint64_t since;
        uint32_t duration, both;
        memcpy(&since, from, sizeof since);
        memcpy(&duration, from + 8, sizeof duration);
        memcpy(&both, from + 12, sizeof both);
        int64_t first = (int64_t)since, last = (int64_t)(since + duration);
        uint32_t number = both & ((1U << LABEL_BITS) - 1), of_kind = both >> LABEL_BITS;
        begin[row] = first;
        end[row] = last;
        label[row] = (int32_t)number;
        kind[row] = (uint8_t)of_kind;
        least = first < least ? first : least;
        most = first > most ? first : most;
        most = last > most ? last : most;
        lowest = number < lowest ? number : lowest;
        highest = number > highest ? number : highest;
        latest_kind = of_kind > latest_kind ? of_kind : latest_kind;
    }
    facts[LEAST * step] = least;
    facts[MOST * step] = most;
    facts[LOWEST * step] = lowest;
    facts[HIGHEST * step] = highest;
    facts[KIND_OF_ALL * step] = latest_kind;
}

/* records(data, sizes, begin, end, label, kind, facts): fill the last five

   `sizes` tells how many records each chunk has; `facts` has a row each for the least time, the
   largest, the lowest label, the highest, the highest kind, with a place for each chunk; a chunk
   without records leaves its own. None where the sizes are none. */
static PyObject *records(PyObject *module, PyObject *const *given, Py_ssize_t arguments)
{
    Py_buffer data;
    Column sizes = {0}, column[5];
    memset(column, 0, sizeof column);
    if (arguments != 7) {
        PyErr_SetString(PyExc_TypeError, "records, sizes, four columns and facts are needed");
        return NULL;
    }
    if (PyObject_GetBuffer(given[0], &data, PyBUF_SIMPLE) < 0)
        return NULL;
    static const Py_ssize_t width[] = {8, 8, 4, 1, 8};
    int fit = column_of(given[1], &sizes, 8, 0);
    for (int i = 0; i < 5 && fit; i++)
        fit = column_of(given[2 + i], &column[i], width[i], 1)
            && column[i].count == (i < 4 ? column[0].count : FACTS * sizes.count);
    Py_ssize_t total = 0;
    for (Py_ssize_t chunk = 0; fit && chunk < sizes.count; chunk++) {
        int64_t size = long_at(&sizes, chunk);
        fit = size >= 0 && size <= column[0].count - total;
        total += fit ? (Py_ssize_t)size : 0;
    }
    fit = fit && total == column[0].count && total == data.len / RECORD && data.len % RECORD == 0;
    if (fit) {
        Py_BEGIN_ALLOW_THREADS
        Py_ssize_t place = 0;
        for (Py_ssize_t chunk = 0; chunk < sizes.count; chunk++) {
            Py_ssize_t size = (Py_ssize_t)long_at(&sizes, chunk);
            if (size)
                spread((const uint8_t *)data.buf + place * RECORD, size,
                       (int64_t *)column[0].first + place, (int64_t *)column[1].first + place,
                       (int32_t *)column[2].first + place, (uint8_t *)column[3].first + place,
                       (int64_t *)column[4].first + chunk, sizes.count);
            place += size;
        }
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&sizes.view);
    for (int i = 0; i < 5; i++)
        PyBuffer_Release(&column[i].view);
    PyBuffer_Release(&data);
    return answer(fit);
}

/* nest(begin, end, own, most[, depth, parent]): fill the last; whether each holds what is in it

   None where it is for others. */
static PyObject *nest(PyObject *module, PyObject *const *given, Py_ssize_t arguments)
{
    Sweep sweep = {0};
    Column own = {0}, depth = {0}, parent = {0};
    if (arguments != 4 && arguments != 6) {
        PyErr_SetString(PyExc_TypeError, "begin, end, own and the most that are open are needed");
        return NULL;
    }
    Py_ssize_t most = PyLong_AsSsize_t(given[3]);
    if (most == -1 && PyErr_Occurred())
        return NULL;
    int fit = column_of(given[0], &sweep.begin, 8, 0) && column_of(given[1], &sweep.end, 8, 0)
        && column_of(given[2], &own, 8, 1)
        && (arguments == 4
            || (column_of(given[4], &depth, 4, 1) && column_of(given[5], &parent, 4, 1)
                && depth.count == own.count && parent.count == own.count))
        && sweep.begin.count == own.count && sweep.end.count == own.count
        && own.count < INT32_MAX;
    int state = 0;
    if (fit) {
        sweep.own = (int64_t *)own.first;
        sweep.depth = (int32_t *)depth.first;
        sweep.parent = (int32_t *)parent.first;
        Py_BEGIN_ALLOW_THREADS
        state = swept(&sweep, most);
        Py_END_ALLOW_THREADS
    }
    Column *columns[] = {&sweep.begin, &sweep.end, &own, &depth, &parent};
    for (int i = 0; i < 5; i++)
        PyBuffer_Release(&columns[i]->view);
    return answer(state);
}

/* sums(begin, end, label, most, count, total, own): add to the last three, which are of labels

   The answer is that of `nest`. */
static PyObject *sums(PyObject *module, PyObject *const *given, Py_ssize_t arguments)
{
    Sweep sweep = {0};
    Column sum[3];
    memset(sum, 0, sizeof sum);
    if (arguments != 7) {
        PyErr_SetString(PyExc_TypeError, "three columns of events and of labels are needed");
        return NULL;
    }
    Py_ssize_t most = PyLong_AsSsize_t(given[3]);
    if (most == -1 && PyErr_Occurred())
        return NULL;
    int fit = column_of(given[0], &sweep.begin, 8, 0) && column_of(given[1], &sweep.end, 8, 0)
        && column_of(given[2], &sweep.label, 4, 0) && sweep.begin.count < INT32_MAX
        && sweep.end.count == sweep.begin.count && sweep.label.count == sweep.begin.count;
    for (int i = 0; i < 3 && fit; i++)
        fit = column_of(given[4 + i], &sum[i], 8, 1) && sum[i].count == sum[0].count;
    int state = 0;
    if (fit && sum[0].count) {
        sweep.count = (int64_t *)sum[0].first;
        sweep.total = (int64_t *)sum[1].first;
        sweep.own = (int64_t *)sum[2].first;
        sweep.labels = sum[0].count;
        Py_BEGIN_ALLOW_THREADS
        state = swept(&sweep, most);
        Py_END_ALLOW_THREADS
    }
    Column *columns[] = {&sweep.begin, &sweep.end, &sweep.label, &sum[0], &sum[1], &sum[2]};
    for (int i = 0; i < 6; i++)
        PyBuffer_Release(&columns[i]->view);
    return answer(state);
}

/* Put the length of each event at the next free place of its label; 0 where there is none. */
static int placed(const Sweep *sweep, int64_t *next, const Column *lengths)
{
    for (Py_ssize_t row = 0; row < sweep->begin.count; row++) {
        int32_t label = int_at(&sweep->label, row);
        if (label < 0 || label >= sweep->labels || next[label] < 0 || next[label] >= lengths->count)
            return 0;
        int64_t length = less(long_at(&sweep->end, row), long_at(&sweep->begin, row));
        if (lengths->view.itemsize == 4)
            ((uint32_t *)lengths->first)[next[label]++] = (uint32_t)length;
        else
            ((int64_t *)lengths->first)[next[label]++] = length;
    }
    return 1;
}

/* group(begin, end, label, next, lengths): fill the last, label by label, from the places `next` on

   `next` has the places of labels, which go on; `lengths` four or eight bytes each. None where an
   event has no place: then some may have been put there. */
static PyObject *group(PyObject *module, PyObject *const *given, Py_ssize_t arguments)
{
    Sweep sweep = {0};
    Column next = {0}, lengths = {0};
    if (arguments != 5) {
        PyErr_SetString(PyExc_TypeError, "three columns of events, places and lengths are needed");
        return NULL;
    }
    int fit = column_of(given[0], &sweep.begin, 8, 0) && column_of(given[1], &sweep.end, 8, 0)
        && column_of(given[2], &sweep.label, 4, 0) && column_of(given[3], &next, 8, 1)
        && (column_of(given[4], &lengths, 4, 1) || lengths.view.itemsize == 8)
        && lengths.view.ndim == 1 && sweep.end.count == sweep.begin.count
        && sweep.label.count == sweep.begin.count;
    int state = 0;
    if (fit) {
        sweep.labels = next.count;
        Py_BEGIN_ALLOW_THREADS
        state = placed(&sweep, (int64_t *)next.first, &lengths);
        Py_END_ALLOW_THREADS
    }
    Column *columns[] = {&sweep.begin, &sweep.end, &sweep.label, &next, &lengths};
    for (int i = 0; i < 5; i++)
        PyBuffer_Release(&columns[i]->view);
    return answer(state);
}

/* ---- the levels of a timeline ---- */

typedef struct { uint32_t label; int64_t time; } Share;
typedef struct { int64_t first, stop; size_t shares; } Known; /* a rectangle, where its shares begin */
typedef struct { int64_t first; uint8_t level; } Run;   /* events that stand together from it on */
typedef struct {
    const int64_t *begin, *before;          /* of events; `before` has one more */
    const uint16_t *short_label;            /* labels of two bytes, or none */
    const uint32_t *label;
    const uint16_t *kind;                   /* of labels */
    int64_t small, end;                     /* events of no rectangle; the largest end */
    uint32_t *place;                        /* of labels: one more than that among the shares */
    int64_t *time_of_kind;
    uint8_t *has_kind;
    uint16_t *kinds;                        /* those of the rectangle */
    Bytes shares, known;                    /* of rectangles that are in no other yet */
    Bytes level, last, first, count, top, time, top_kind;
} Levels;

static uint8_t bits_of(uint64_t value)
{
#ifdef __GNUC__
    return value ? 64 - __builtin_clzll(value) : 0;
#else
    uint8_t bits = 0;
    for (; value; value >>= 1)
        bits++;
    return bits;
#endif
}

/* Add a time to the share of a label, which begins where `shares` does; give how many there are. */
static inline uint32_t add_share(Levels *all, Share *shares, uint32_t count, Share more)
{
    uint32_t place = all->place[more.label];
    if (place) {
        add(&shares[place - 1].time, more.time);
        return count;
    }
    shares[count] = more;
    return all->place[more.label] = count + 1;
}

static uint32_t add_events(Levels *all, Share *shares, uint32_t count, int64_t event, int64_t stop)
{
    for (; event < stop; event++) {
        Share of_event = {all->short_label ? all->short_label[event] : all->label[event],
                          less(all->before[event + 1], all->before[event])};
        count = add_share(all, shares, count, of_event);
    }
    return count;
}

/* Find the kind with the most time, the lowest of those alike. */
static uint16_t top_kind(Levels *all, const Share *shares, uint32_t count)
{
    int size = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint16_t kind = all->kind[shares[i].label];
        if (!all->has_kind[kind]) {
            all->has_kind[kind] = 1;
            all->time_of_kind[kind] = 0;
            all->kinds[size++] = kind;
        }
        add(&all->time_of_kind[kind], shares[i].time);
    }
    uint16_t top = all->kinds[0];
    for (int i = 0; i < size; i++) {
        uint16_t kind = all->kinds[i];
        int64_t more = all->time_of_kind[kind], most = all->time_of_kind[top];
        if (more > most || (more == most && kind < top))
            top = kind;
        all->has_kind[kind] = 0;
    }
    return top;
}

/* Make a rectangle of events, and of the rectangles in it; 0 where the memory is out. */
static int put_rectangle(Levels *all, Run run, int64_t stop, uint8_t last)
{
    const Known *known = (Known *)all->known.data;
    size_t size = all->known.size / sizeof *known, inner = size;
    int64_t loose = stop - run.first, event = run.first;
    for (; inner && known[inner - 1].first >= run.first; inner--)
        loose -= known[inner - 1].stop - known[inner - 1].first;
    Known new = {run.first, stop, inner < size ? known[inner].shares : all->shares.size};
    uint32_t old = (uint32_t)((all->shares.size - new.shares) / sizeof(Share)), count = 0;
    if (extend(&all->shares, (size_t)loose * sizeof(Share)) == NULL)
        return 0;
    Share *shares = (Share *)(all->shares.data + new.shares);
    for (uint32_t i = 0; i < old; i++)
        count = add_share(all, shares, count, shares[i]);
    for (size_t i = inner; i < size; event = known[i++].stop)
        count = add_events(all, shares, count, event, known[i].first);
    count = add_events(all, shares, count, event, stop);
    Share top = shares[0];
    for (uint32_t i = 0; i < count; i++) {
        if (shares[i].time > top.time || (shares[i].time == top.time && shares[i].label < top.label))
            top = shares[i];
        all->place[shares[i].label] = 0;
    }
    uint16_t kind = top_kind(all, shares, count);
    all->shares.size = new.shares + count * sizeof *shares;
    all->known.size = inner * sizeof *known;
    return put(&all->known, &new, sizeof new)
        && put_byte(&all->level, run.level) && put_byte(&all->last, last)
        && put_int(&all->first, (int32_t)run.first) && put_int(&all->count, (int32_t)(stop - run.first))
        && put_int(&all->top, (int32_t)top.label) && put_long(&all->time, top.time)
        && put(&all->top_kind, &kind, sizeof kind);
}

/* Tell from which level on an event stands together with the one before it. */
static uint8_t together(const Levels *all, int64_t event, int64_t length, int64_t length_before)
{
    uint64_t apart = (uint64_t)(all->begin[event] ^ all->begin[event - 1]);
    return bits_of(apart | (length > 0 ? length : 0) | (length_before > 0 ? length_before : 0));
}

/* Make the rectangles of a row: a stack has the runs that may get more, each within the next.

   0 where the memory is out. */
static int put_row(Levels *all, int64_t first, int64_t stop)
{
    Run open[66];                           /* of levels that fall */
    int depth = 0;
    int64_t length_before = 0;
    all->shares.size = all->known.size = 0;
    for (int64_t event = first; event <= stop; event++) {
        int64_t length = event < stop ? less(all->before[event + 1], all->before[event]) : 0;
        uint8_t level = 65;
        if (event < stop) {
            int64_t end = (int64_t)((uint64_t)all->begin[event] + (uint64_t)length);
            all->end = end > all->end ? end : all->end;
            if (event > first)
                level = together(all, event, length, length_before);
        }
        length_before = length;
        int64_t begins = event - 1;
        while (depth && open[depth - 1].level < level) {
            Run run = open[--depth];
            uint8_t until = depth && open[depth - 1].level < level ? open[depth - 1].level : level;
            begins = run.first;
            if (event - run.first > all->small && !put_rectangle(all, run, event, until - 1))
                return 0;
        }
        if (event > first && event < stop && !(depth && open[depth - 1].level == level))
            open[depth++] = (Run){begins, level};
    }
    return 1;
}

/* Make the rectangles of all rows; 1, 0 where a label has no kind, -1 where the memory is out. */
static int put_rows(Levels *all, const Column *offset, size_t labels)
{
    int64_t events = long_at(offset, offset->count - 1);
    for (int64_t event = 0; event < events; event++)
        if ((all->short_label ? all->short_label[event] : all->label[event]) >= labels)
            return 0;
    all->place = calloc(labels + 1, sizeof *all->place);
    all->time_of_kind = malloc((UINT16_MAX + 1) * sizeof *all->time_of_kind);
    all->has_kind = calloc(UINT16_MAX + 1, 1);
    all->kinds = malloc((UINT16_MAX + 1) * sizeof *all->kinds);
    int state = all->place && all->time_of_kind && all->has_kind && all->kinds ? 1 : -1;
    for (Py_ssize_t row = 0; row + 1 < offset->count && state > 0; row++)
        if (!put_row(all, long_at(offset, row), long_at(offset, row + 1)))
            state = -1;
    return state;
}

/* Tell whether rows follow each other, and end with the last event. */
static int are_rows(const Column *offset, int64_t events)
{
    int64_t last = 0;
    for (Py_ssize_t row = 0; row < offset->count; row++) {
        int64_t here = long_at(offset, row);
        if (here < last || (row == 0 && here != 0))
            return 0;
        last = here;
    }
    return offset->count > 0 && last == events && events < INT32_MAX;
}

static PyObject *levels_of(Levels *all, int state)
{
    Bytes *columns[] = {&all->level, &all->last, &all->first, &all->count, &all->top, &all->time,
                        &all->top_kind};
    enum { COUNT = sizeof columns / sizeof *columns };
    PyObject *tuple = state > 0 ? PyTuple_New(COUNT + 1) : NULL;
    for (int i = 0; i < COUNT; i++) {
        PyObject *column = tuple != NULL ? taken(columns[i]) : NULL;
        if (column != NULL)
            PyTuple_SET_ITEM(tuple, i, column);
        else
            Py_CLEAR(tuple);
        free(columns[i]->data);
    }
    if (tuple != NULL) {
        PyObject *end = PyLong_FromLongLong(all->end);
        if (end != NULL)
            PyTuple_SET_ITEM(tuple, COUNT, end);
        else
            Py_CLEAR(tuple);
    }
    void *others[] = {all->place, all->time_of_kind, all->has_kind, all->kinds, all->shares.data,
                      all->known.data};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        free(others[i]);
    return tuple;
}

/* levels(begin, before, label, kind, offset, small): each rectangle of more than `small` events

   first and last level, first event, how many, label with the most time, that time, kind with the
   most; and where the last event ends. None where it is for others. */
static PyObject *levels(PyObject *module, PyObject *const *given, Py_ssize_t arguments)
{
    Levels all = {0};
    Column column[5];
    memset(column, 0, sizeof column);
    if (arguments != 6) {
        PyErr_SetString(PyExc_TypeError, "columns of events, of labels and of rows are needed");
        return NULL;
    }
    all.small = PyLong_AsLongLong(given[5]);
    if (all.small == -1 && PyErr_Occurred())
        return NULL;
    int is_short = 0;
    int fit = all.small >= 0 && column_of(given[0], &column[0], 8, 0)
        && column_of(given[1], &column[1], 8, 0) && column_of(given[4], &column[4], 8, 0)
        && column_of(given[3], &column[3], 2, 0)
        && ((is_short = column_of(given[2], &column[2], 2, 0)) || column[2].view.itemsize == 4)
        && are_rows(&column[4], column[0].count) && column[1].count == column[0].count + 1
        && column[2].count == column[0].count;
    for (int i = 0; i < 4 && fit; i++) /* without gaps */
        fit = column[i].count < 2 || column[i].step == column[i].view.itemsize;
    int state = 0;
    if (fit) {
        all.begin = (int64_t *)column[0].first;
        all.before = (int64_t *)column[1].first;
        all.short_label = is_short ? (uint16_t *)column[2].first : NULL;
        all.label = (uint32_t *)column[2].first;
        all.kind = (uint16_t *)column[3].first;
        Py_BEGIN_ALLOW_THREADS
        state = put_rows(&all, &column[4], (size_t)column[3].count);
        Py_END_ALLOW_THREADS
    }
    PyObject *found = levels_of(&all, state);
    for (int i = 0; i < 5; i++)
        PyBuffer_Release(&column[i].view);
    return state > 0 ? found : answer(state);
}

/* ---- two columns that ascend ---- */

/* merge(ascending, keys, places): find for each key the first place that is not below it

   None where one of both does not ascend. */
static PyObject *merge(PyObject *module, PyObject *const *given, Py_ssize_t arguments)
{
    Column ascending = {0}, keys = {0}, places = {0};
    if (arguments != 3) {
        PyErr_SetString(PyExc_TypeError, "two columns and places are needed");
        return NULL;
    }
    int fit = column_of(given[0], &ascending, 8, 0) && column_of(given[1], &keys, 8, 0)
        && column_of(given[2], &places, 8, 1) && places.count == keys.count;
    if (fit) {
        Py_BEGIN_ALLOW_THREADS
        Py_ssize_t place = 0;
        for (Py_ssize_t row = 0; row < keys.count && fit; row++) {
            int64_t key = long_at(&keys, row);
            fit = row == 0 || key >= long_at(&keys, row - 1);
            for (; place < ascending.count && long_at(&ascending, place) < key && fit; place++)
                fit = place == 0 || long_at(&ascending, place) >= long_at(&ascending, place - 1);
            ((int64_t *)places.first)[row] = place;
        }
        Py_END_ALLOW_THREADS
    }
    Column *columns[] = {&ascending, &keys, &places};
    for (int i = 0; i < 3; i++)
        PyBuffer_Release(&columns[i]->view);
    return answer(fit);
}

/* ---- columns that are told above a base ---- */

typedef struct {
    Column above, base, changes, counted;   /* as in stepped.py; `above` may be none */
    int has_above;
} Stepped;

/* Count the bits that are set. */
static int bits_in(uint64_t word)
{
#ifdef __GNUC__
    return __builtin_popcountll(word);
#else
    int bits = 0;
    for (; word; word &= word - 1)
        bits++;
    return bits;
#endif
}

/* Find the base at a place; 0 where there is no such place. */
static int base_at(const Stepped *column, int64_t place, int64_t *base)
{
    if (place < 0 || place / 64 >= column->changes.count)
        return 0;
    uint64_t bits = ((uint64_t *)column->changes.first)[place / 64] << (63 - place % 64);
    int64_t change = (int64_t)((uint32_t *)column->counted.first)[place / 64] + bits_in(bits) - 1;
    if (change < 0 || change >= column->base.count)
        return 0;
    *base = ((int64_t *)column->base.first)[change];
    return 1;
}

static uint32_t above_at(const Stepped *column, int64_t place)
{
    Py_ssize_t last = column->above.count - 1;
    return ((uint32_t *)column->above.first)[place < last ? place : last];
}

/* Find, or raise, the numbers at places; 0 where there is no such place. */
static int raised(const Stepped *column, const Column *places, int64_t *numbers)
{
    for (Py_ssize_t row = 0; row < places->count; row++) {
        int64_t place = long_at(places, row), base;
        if (!base_at(column, place, &base))
            return 0;
        if (column->has_above)
            numbers[row] = above_at(column, place);
        add(&numbers[row], base);
    }
    return 1;
}

/* Find, or raise, the numbers at places from `first` on; 0 where there is no such place. */
static int stretched(const Stepped *column, int64_t first, int64_t *numbers, Py_ssize_t count)
{
    for (Py_ssize_t row = 0, run; row < count; row += run) {
        int64_t place = first + row, base;
        if (!base_at(column, place, &base))
            return 0;
        /* Up to the next change of this word, or its end. */
        uint64_t later = ((uint64_t *)column->changes.first)[place / 64] >> place % 64 >> 1;
        run = later ? bits_in((later & -later) - 1) + 1 : 64 - place % 64;
        run = run < count - row ? run : count - row;
        int64_t *to = numbers + row;
        Py_ssize_t here = 0;
        if (column->has_above) {
            Py_ssize_t plain = column->above.count - place;
            plain = plain < 0 ? 0 : plain < run ? plain : run;
            const uint32_t *above = (uint32_t *)column->above.first + (plain ? place : 0);
            for (; here < plain; here++)
                to[here] = (int64_t)((uint64_t)base + above[here]);
            for (; here < run; here++)
                to[here] = (int64_t)((uint64_t)base + above_at(column, place + here));
        }
        else
            for (; here < run; here++)
                add(&to[here], base);
    }
    return 1;
}

/* Find the first place from each of `low` to `high` whose number is not below that of the row. */
static int sought(const Stepped *column, const Column *high, const Column *numbers, int64_t *low)
{
    for (Py_ssize_t row = 0; row < numbers->count; row++) {
        int64_t first = low[row], stop = long_at(high, row), number = long_at(numbers, row), base;
        if (first < 0 || stop > PTRDIFF_MAX / 2)
            return 0;
        while (first < stop) {
            int64_t middle = first + (stop - first) / 2;
            if (!base_at(column, middle, &base))
                return 0;
            add(&base, above_at(column, middle));
            if (base < number)
                first = middle + 1;
            else
                stop = middle;
        }
        low[row] = first;
    }
    return 1;
}

/* Take a column, which has no gaps, of its four parts; 0 where it is none. */
static int stepped_of(PyObject *const *given, Stepped *column)
{
    Column *parts[] = {&column->above, &column->base, &column->changes, &column->counted};
    static const Py_ssize_t width[] = {4, 8, 8, 4};
    int fit = 1;
    column->has_above = given[0] != Py_None;
    for (int i = !column->has_above; i < 4 && fit; i++)
        fit = column_of(given[i], parts[i], width[i], 0)
            && (parts[i]->count < 2 || parts[i]->step == width[i]);
    return fit && column->counted.count == column->changes.count
        && (!column->has_above || column->above.count > 0);
}

static void release(Stepped *column)
{
    Column *parts[] = {&column->above, &column->base, &column->changes, &column->counted};
    for (int i = 0; i < 4; i++)
        PyBuffer_Release(&parts[i]->view);
}

/* sought(above, base, changes, counted, high, numbers, low): move each of the last

   It becomes the first place, from there to that of `high`, whose number is not below that of
   `numbers`; between these the column ascends. None where a place is none. */
static PyObject *sought_of(PyObject *module, PyObject *const *given, Py_ssize_t arguments)
{
    Stepped column = {0};
    Column high = {0}, numbers = {0}, low = {0};
    if (arguments != 7) {
        PyErr_SetString(PyExc_TypeError, "a column, places and numbers are needed");
        return NULL;
    }
    int fit = stepped_of(given, &column) && column.has_above && column_of(given[4], &high, 8, 0)
        && column_of(given[5], &numbers, 8, 0) && column_of(given[6], &low, 8, 1)
        && high.count == low.count && numbers.count == low.count;
    if (fit)
        fit = sought(&column, &high, &numbers, (int64_t *)low.first);
    Column *others[] = {&high, &numbers, &low};
    for (int i = 0; i < 3; i++)
        PyBuffer_Release(&others[i]->view);
    release(&column);
    return answer(fit);
}

/* raised(above, base, changes, counted, places, numbers): fill the last

   Without `above` what is in it is raised. None where a place is none. */
static PyObject *raised_of(PyObject *module, PyObject *const *given, Py_ssize_t arguments)
{
    Stepped column = {0};
    Column places = {0}, numbers = {0};
    if (arguments != 6) {
        PyErr_SetString(PyExc_TypeError, "a column, places and numbers are needed");
        return NULL;
    }
    int fit = stepped_of(given, &column) && column_of(given[4], &places, 8, 0)
        && column_of(given[5], &numbers, 8, 1) && numbers.count == places.count;
    if (fit)
        fit = raised(&column, &places, (int64_t *)numbers.first);
    PyBuffer_Release(&places.view);
    PyBuffer_Release(&numbers.view);
    release(&column);
    return answer(fit);
}

/* stretched(above, base, changes, counted, first, numbers): fill the last, from a place on

   Without `above` what is in it is raised. None where a place is none. */
static PyObject *stretched_of(PyObject *module, PyObject *const *given, Py_ssize_t arguments)
{
    Stepped column = {0};
    Column numbers = {0};
    if (arguments != 6) {
        PyErr_SetString(PyExc_TypeError, "a column, a place and numbers are needed");
        return NULL;
    }
    Py_ssize_t first = PyNumber_AsSsize_t(given[4], PyExc_OverflowError);
    if (first == -1 && PyErr_Occurred())
        return NULL;
    int fit = stepped_of(given, &column) && column_of(given[5], &numbers, 8, 1) && first >= 0
        && numbers.count <= PTRDIFF_MAX - first;
    if (fit) {
        Py_BEGIN_ALLOW_THREADS
        fit = stretched(&column, first, (int64_t *)numbers.first, numbers.count);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&numbers.view);
    release(&column);
    return answer(fit);
}

/* ---- the module ---- */

static PyMethodDef methods[] = {
    {"scan", (PyCFunction)scan, METH_O, NULL},
    {"events", (PyCFunction)(void (*)(void))events, METH_FASTCALL, NULL},
    {"crc32", (PyCFunction)crc32, METH_O, NULL},
    {"forward", (PyCFunction)(void (*)(void))forward_of, METH_FASTCALL, NULL},
    {"records", (PyCFunction)(void (*)(void))records, METH_FASTCALL, NULL},
    {"nest", (PyCFunction)(void (*)(void))nest, METH_FASTCALL, NULL},
    {"sums", (PyCFunction)(void (*)(void))sums, METH_FASTCALL, NULL},
    {"group", (PyCFunction)(void (*)(void))group, METH_FASTCALL, NULL},
    {"numbers", (PyCFunction)(void (*)(void))numbers, METH_FASTCALL, NULL},
    {"merge", (PyCFunction)(void (*)(void))merge, METH_FASTCALL, NULL},
    {"stretched", (PyCFunction)(void (*)(void))stretched_of, METH_FASTCALL, NULL},
    {"raised", (PyCFunction)(void (*)(void))raised_of, METH_FASTCALL, NULL},
    {"sought", (PyCFunction)(void (*)(void))sought_of, METH_FASTCALL, NULL},
    {"levels", (PyCFunction)(void (*)(void))levels, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT, .m_name = "pva._kernels", .m_size = -1, .m_methods = methods};

PyMODINIT_FUNC PyInit__kernels(void)
{
    PyObject *module = PyModule_Create(&module_definition);
    if (module != NULL && PyModule_AddIntConstant(module, "INTERFACE", INTERFACE) < 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
