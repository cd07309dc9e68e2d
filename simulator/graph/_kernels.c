/* Passes over lists of intervals: what intervals.py and its users do with NumPy, each in one loop.

   Built where there is a compiler; without it the simulator is slower and does the same. Columns
   come as buffers of 64-bit integers, with a step of their own, so that equal lengths may be one
   number. Results are bytearrays that NumPy looks into. No pointer is kept when a call is over. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#ifdef Py_GIL_DISABLED
#error "without the interpreter's lock another thread may change what a call reads"
#endif

#define INTERFACE 7                         /* as in kernels.py */
#define SHORT_FRAGMENT 8                    /* as in edges.py */
#define MOST_COLUMNS 10
#define MOST_LOOPS 32
#define STEPS_AT_MOST 8                     /* of a piece, in a hash */
#define COUNTED 8                           /* as in intervals.py */
#define COUNTED_AT_LEAST (1 << 14)

typedef struct { Py_buffer view; const char *first; Py_ssize_t count, step; } Column;

static inline int64_t at(const Column *column, Py_ssize_t place)
{
    int64_t value;
    memcpy(&value, column->first + place * column->step, sizeof value);
    return value;
}

/* ---- what comes in and goes out ---- */

static void let_go(Column *columns, int count)
{
    while (count > 0)
        PyBuffer_Release(&columns[--count].view);
}

/* Take `count` columns; give 0, or -1 with an error and none taken. */
static int take(PyObject *const *given, Py_ssize_t arguments, Column *columns, int count)
{
    if (arguments != count) {
        PyErr_Format(PyExc_TypeError, "%d columns are needed, not %zd", count, arguments);
        return -1;
    }
    for (int number = 0; number < count; number++) {
        Column *column = &columns[number];
        if (PyObject_GetBuffer(given[number], &column->view, PyBUF_STRIDED_RO | PyBUF_FORMAT) < 0) {
            let_go(columns, number);
            return -1;
        }
        const char *format = column->view.format;
        if (column->view.ndim != 1 || column->view.itemsize != 8 || format == NULL
            || strlen(format) != 1 || strchr("lq", *format) == NULL) {
            PyErr_Format(PyExc_TypeError, "column %d is not a row of int64", number);
            let_go(columns, number + 1);
            return -1;
        }
        column->first = column->view.buf;
        column->count = column->view.shape[0];
        column->step = column->view.strides[0];
    }
    return 0;
}

/* Tell whether columns from `first` to `last` have the same length; else set an error. */
static int alike(const Column *columns, int first, int last)
{
    for (int number = first + 1; number <= last; number++)
        if (columns[number].count != columns[first].count) {
            PyErr_Format(PyExc_ValueError, "columns %d and %d differ in length", first, number);
            return 0;
        }
    return 1;
}

/* Make a bytearray, or set an error. One of no bytes grows: where memory is short, Python 3.11 prints a
   SystemError of its own for one that begins with its bytes. */
static PyObject *fresh(Py_ssize_t bytes)
{
    PyObject *result = PyByteArray_FromStringAndSize(NULL, 0);
    if (result != NULL && PyByteArray_Resize(result, bytes) < 0)
        Py_CLEAR(result);
    return result;
}

static int64_t *numbers_of(PyObject *result) { return (int64_t *)PyByteArray_AS_STRING(result); }

/* Put results into a tuple, which then owns them; NULL where one of them could not be had. */
static PyObject *together(PyObject **results, int count)
{
    PyObject *tuple = PyTuple_New(count);
    for (int number = 0; number < count; number++) {
        if (results[number] == NULL || tuple == NULL) {
            for (; number < count; number++)
                Py_XDECREF(results[number]);
            Py_XDECREF(tuple);
            return NULL;
        }
        PyTuple_SET_ITEM(tuple, number, results[number]);
    }
    return tuple;
}

/* Divide numbers that are not negative; most sizes are a power of two. */
static inline int64_t down(int64_t number, int64_t size)
{
    return size == 4 ? number >> 2 : size == 2 ? number >> 1 : size == 1 ? number : number / size;
}

/* ---- search ---- */

/* Give the first place in [low, high) whose number is above `value`, or `high`. */
static Py_ssize_t between(const Column *column, Py_ssize_t low, Py_ssize_t high, int64_t value)
{
    while (low < high) {
        Py_ssize_t middle = low + (high - low) / 2;
        if (at(column, middle) > value)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Give the first place whose number is above `value`; it is mostly near `hint`. */
static Py_ssize_t above(const Column *column, Py_ssize_t hint, int64_t value)
{
    Py_ssize_t count = column->count, reach = 1;
    if (hint < count && at(column, hint) <= value) {
        Py_ssize_t low = hint + 1;
        while (low + reach < count && at(column, low + reach) <= value) {
            low += reach + 1;
            reach *= 2;
        }
        return between(column, low, low + reach < count ? low + reach : count, value);
    }
    Py_ssize_t high = hint < count ? hint : count;
    while (high - reach >= 0 && at(column, high - reach) > value) {
        high -= reach;
        reach *= 2;
    }
    return between(column, high - reach >= 0 ? high - reach + 1 : 0, high, value);
}

/* ---- lists of intervals ---- */

/* spread(begins, lengths): every number of the intervals, in order */
static PyObject *spread(PyObject *module, PyObject *const *given, Py_ssize_t arguments)
{
    Column in[2];
    int64_t total = 0;
    PyObject *results[1] = {NULL};
    if (take(given, arguments, in, 2) < 0)
        return NULL;
    if (!alike(in, 0, 1))
        goto end;
    for (Py_ssize_t i = 0; i < in[1].count; i++) {
        if (at(&in[1], i) < 0) {
            PyErr_SetString(PyExc_ValueError, "a length is negative");
            goto end;
        }
        total += at(&in[1], i);
    }
    results[0] = total > PY_SSIZE_T_MAX / 8 ? PyErr_NoMemory() : fresh(8 * total);
    if (results[0] == NULL)
        goto end;
    int64_t *out = numbers_of(results[0]);
    for (Py_ssize_t i = 0; i < in[0].count; i++)
        for (int64_t number = at(&in[0], i), last = number + at(&in[1], i); number < last; number++)
            *out++ = number;
end:
    let_go(in, 2);
    return together(results, 1);
}

/* from_elements(elements): begins and lengths of the intervals that they form, in their order */
static PyObject *from_elements(PyObject *module, PyObject *const *given, Py_ssize_t arguments)
{
    Column in[1];
    PyObject *results[2] = {NULL, NULL};
    if (take(given, arguments, in, 1) < 0)
        return NULL;
    Py_ssize_t heads = in[0].count > 0, count = in[0].count;
    for (Py_ssize_t i = 1; i < count; i++)
        heads += at(&in[0], i) != at(&in[0], i - 1) + 1;
    results[0] = fresh(8 * heads);
    results[1] = fresh(8 * heads);
    if (results[0] != NULL && results[1] != NULL) {
        int64_t *begins = numbers_of(results[0]), *lengths = numbers_of(results[1]);
        Py_ssize_t place = -1;
        for (Py_ssize_t i = 0; i < count; i++) {
            if (i == 0 || at(&in[0], i) != at(&in[0], i - 1) + 1) {
                begins[++place] = at(&in[0], i);
                lengths[place] = 0;
            }
            lengths[place]++;
        }
    }
    let_go(in, 1);
    return together(results, 2);
}

/* join(begins, lengths): as in intervals.py; None where they stay as they are */
static PyObject *join(PyObject *module, PyObject *const *given, Py_ssize_t arguments)
{
    Column in[2];
    PyObject *results[2] = {NULL, NULL};
    if (take(given, arguments, in, 2) < 0)
        return NULL;
    if (!alike(in, 0, 1))
        goto end;
    Py_ssize_t heads = 0, count = in[0].count;
    int64_t end = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        int64_t begin = at(&in[0], i), length = at(&in[1], i);
        heads += length > 0 && (heads == 0 || begin != end);
        end = length > 0 ? begin + length : end;
    }
    if (heads == count) {
        let_go(in, 2);
        Py_RETURN_NONE;
    }
    results[0] = fresh(8 * heads);
    results[1] = fresh(8 * heads);
    if (results[0] == NULL || results[1] == NULL)
        goto end;
    int64_t *begins = numbers_of(results[0]), *lengths = numbers_of(results[1]);
    Py_ssize_t place = -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        int64_t begin = at(&in[0], i), length = at(&in[1], i);
        if (length <= 0)
            continue;
        if (place < 0 || begin != end) {
            begins[++place] = begin;
            lengths[place] = 0;
        }
        lengths[place] += length;
        end = begin + length;
    }
end:
    let_go(in, 2);
    return together(results, 2);
}

/* cut(begins, lengths, low, high): as in intervals.py; the last result is the length of all pieces
   where they have the same, and 0 where they do not */
static PyObject *cut(PyObject *module, PyObject *const *given, Py_ssize_t arguments)
{
    Column in[4];
    PyObject *results[4] = {NULL, NULL, NULL, NULL};
    if (take(given, arguments, in, 4) < 0)
        return NULL;
    Py_ssize_t intervals = in[0].count, ranges = in[2].count;
    int64_t *held = PyMem_RawMalloc(8 * (intervals + 1 + ranges)), *first = held + intervals + 1;
    if (held == NULL) {
        PyErr_NoMemory();
        goto end;
    }
    if (!alike(in, 0, 1) || !alike(in, 2, 3))
        goto end;
    held[0] = 0;
    for (Py_ssize_t i = 0; i < intervals; i++)
        held[i + 1] = held[i] + at(&in[1], i);
    results[2] = fresh(8 * (ranges + 1));
    if (results[2] == NULL)
        goto end;
    int64_t *starts = numbers_of(results[2]);
    Column offsets = {.first = (const char *)held, .count = intervals + 1, .step = 8};
    Py_ssize_t place = 0;
    starts[0] = 0;
    for (Py_ssize_t range = 0; range < ranges; range++) {
        int64_t low = at(&in[2], range), high = at(&in[3], range);
        starts[range + 1] = starts[range];
        if (high <= low)
            continue;
        if (low < 0 || high > held[intervals]) {
            PyErr_Format(PyExc_IndexError, "positions %lld to %lld of %lld", (long long)low,
                         (long long)high, (long long)held[intervals]);
            goto end;
        }
        place = above(&offsets, place, low) - 1;
        first[range] = place;
        while (held[place + 1] < high)
            place++;
        starts[range + 1] += place - first[range] + 1;
    }
    Py_ssize_t total = starts[ranges];
    results[0] = fresh(8 * total);
    results[1] = fresh(8 * total);
    if (results[0] == NULL || results[1] == NULL)
        goto end;
    int64_t *begins = numbers_of(results[0]), *lengths = numbers_of(results[1]);
    int64_t differ = 0;
    for (Py_ssize_t range = 0; range < ranges; range++) {
        int64_t low = at(&in[2], range), high = at(&in[3], range);
        Py_ssize_t source = first[range], piece = starts[range], end = starts[range + 1];
        for (; piece < end; piece++, source++) {
            int64_t begin = held[source] > low ? held[source] : low;
            int64_t last = held[source + 1] < high ? held[source + 1] : high;
            begins[piece] = at(&in[0], source) + begin - held[source];
            lengths[piece] = last - begin;
            differ |= (last - begin) ^ lengths[0];
        }
    }
    results[3] = fresh(8);
    if (results[3] != NULL)
        *numbers_of(results[3]) = total == 0 || differ ? 0 : lengths[0];
end:
    PyMem_RawFree(held);
    let_go(in, 4);
    if (PyErr_Occurred()) {
        for (int number = 0; number < 4; number++)
            Py_CLEAR(results[number]);
        return NULL;
    }
    return together(results, 4);
}

/* Intervals that grow one by one; there is room for all. */
typedef struct { int64_t *begins, *lengths, end; Py_ssize_t count; } Joined;

static inline void append(Joined *joined, int64_t begin, int64_t length)
{
    if (joined->count > 0 && begin == joined->end)
        joined->lengths[joined->count - 1] += length;
    else {
        joined->begins[joined->count] = begin;
        joined->lengths[joined->count++] = length;
    }
    joined->end = begin + length;
}

/* Put intervals into results of their own, and the length of all where they have the same, else 0;
   lengths that are the same are left out. */
static void joined_columns(const Joined *joined, PyObject **results)
{
    int64_t differ = 0;
    for (Py_ssize_t i = 0; i < joined->count; i++)
        differ |= joined->lengths[i] ^ joined->lengths[0];
    int64_t same = joined->count == 0 || differ ? 0 : joined->lengths[0];
    size_t bytes = 8 * (size_t)joined->count;
    results[0] = fresh((Py_ssize_t)bytes);
    results[1] = fresh(same ? 0 : (Py_ssize_t)bytes);
    results[2] = fresh(8);
    if (results[0] == NULL || results[1] == NULL || results[2] == NULL)
        return;
    memcpy(numbers_of(results[0]), joined->begins, bytes);
    if (!same)
        memcpy(numbers_of(results[1]), joined->lengths, bytes);
    *numbers_of(results[2]) = same;
}

/* gathered(begins, lengths, places): the numbers at these places of intervals laid end to end, as of
   `rearranged` */
static PyObject *gathered(PyObject *module, PyObject *const *given, Py_ssize_t arguments)
{
    Column in[3];
    PyObject *results[3] = {NULL, NULL, NULL};
    int64_t *numbers = NULL, *grown = NULL, total = 0;
    if (take(given, arguments, in, 3) < 0)
        return NULL;
    if (!alike(in, 0, 1))
        goto end;
    Py_ssize_t count = in[2].count;
    for (Py_ssize_t i = 0; i < in[1].count; i++)
        total += at(&in[1], i) > 0 ? at(&in[1], i) : 0;
    numbers = PyMem_RawMalloc(8 * (size_t)total + 1);
    grown = PyMem_RawMalloc(16 * (size_t)count + 1);
    if (numbers == NULL || grown == NULL) {
        PyErr_NoMemory();
        goto end;
    }
    int64_t *out = numbers;
    for (Py_ssize_t i = 0; i < in[0].count; i++)
        for (int64_t number = at(&in[0], i), last = number + at(&in[1], i); number < last; number++)
            *out++ = number;
    Joined joined = {grown, grown + count, 0, 0};
    for (Py_ssize_t i = 0; i < count; i++) {
        int64_t place = at(&in[2], i);
        if (place < 0 || place >= total) {
            PyErr_Format(PyExc_IndexError, "place %lld of %lld", (long long)place, (long long)total);
            goto end;
        }
        append(&joined, numbers[place], 1);
    }
    joined_columns(&joined, results);
end:
    PyMem_RawFree(numbers);
    PyMem_RawFree(grown);
    let_go(in, 3);
    if (PyErr_Occurred()) {
        for (int number = 0; number < 3; number++)
            Py_CLEAR(results[number]);
        return NULL;
    }
    return together(results, 3);
}

/* Append the blocks of `size` numbers that loops lead to. `first` is of each block its number, where
   it has one, else the interval in which it begins; `held` are the positions of the intervals. */
static void in_loops(Joined *joined, const Column *in, const int64_t *held, const int64_t *first,
                     int64_t size)
{
    int64_t turns[MOST_LOOPS] = {0}, block = 0;
    int last = (int)in[2].count - 1;
    int64_t inner = last < 0 ? 1 : at(&in[2], last), step = last < 0 ? 0 : at(&in[3], last);
    for (;;) {
        for (int64_t turn = 0; turn < inner; turn++, block += step) {
            if (size == 1) {
                append(joined, first[block], 1);
                continue;
            }
            int64_t low = block * size, high = low + size, place = first[block];
            for (; low < high; place++) {
                int64_t end = held[place + 1] < high ? held[place + 1] : high;
                if (end > low)
                    append(joined, at(&in[0], place) + low - held[place], end - low);
                low = end;
            }
        }
        block -= inner * step;
        int loop = last - 1;
        while (loop >= 0 && ++turns[loop] == at(&in[2], loop)) {
            turns[loop] = 0;
            block -= (at(&in[2], loop) - 1) * at(&in[3], loop);
            loop--;
        }
        if (loop < 0)
            return;
        block += at(&in[3], loop);
    }
}

/* Find of each block of `size` numbers what `in_loops` takes; give how many intervals they meet. */
static int64_t find_blocks(const Column *in, const int64_t *held, int64_t *first, int64_t blocks,
                           int64_t size)
{
    Py_ssize_t place = 0;
    int64_t meets = 0;
    for (int64_t block = 0; block < blocks; block++) {
        while (held[place + 1] <= block * size)
            place++;
        first[block] = size == 1 ? at(&in[0], place) + block - held[place] : place;
        meets++;
        for (; held[place + 1] < (block + 1) * size; place++)
            meets++;
    }
    return meets;
}

/* Tell whether the intervals are single numbers that can be read where they stand. */
static int are_numbers(const Column *begins, const Column *lengths)
{
    return lengths->step == 0 && lengths->count > 0 && at(lengths, 0) == 1 && begins->step == 8
        && (uintptr_t)begins->first % sizeof(int64_t) == 0;
}

/* rearranged(begins, lengths, times, steps, size): intervals laid end to end, in blocks of `size`, in
   the order of loops over blocks, the outermost first: their intervals, joined, and the length of
   all where they have the same, else 0. Each block comes once. */
static PyObject *rearranged(PyObject *module, PyObject *const *given, Py_ssize_t arguments)
{
    Column in[5];
    PyObject *results[3] = {NULL, NULL, NULL};
    int64_t *held = NULL, *first = NULL, *grown = NULL;
    if (take(given, arguments, in, 5) < 0)
        return NULL;
    if (!alike(in, 0, 1) || !alike(in, 2, 3))
        goto end;
    Py_ssize_t intervals = in[0].count;
    int64_t size = in[4].count == 1 ? at(&in[4], 0) : -1, blocks = 1, furthest = 0;
    int fits = size >= 0 && in[2].count <= MOST_LOOPS;
    for (Py_ssize_t loop = 0; loop < in[2].count && fits; loop++) {
        fits = at(&in[2], loop) >= 0 && at(&in[3], loop) >= 0;
        blocks *= at(&in[2], loop);
        furthest += (at(&in[2], loop) - 1) * at(&in[3], loop);
    }
    int64_t wanted = size > 0 ? blocks : 0, numbers = intervals;
    int as_they_are = size == 1 && are_numbers(&in[0], &in[1]);
    if (!as_they_are) {
        held = PyMem_RawMalloc(8 * ((size_t)intervals + 1));
        if (held == NULL) {
            PyErr_NoMemory();
            goto end;
        }
        held[0] = 0;
        for (Py_ssize_t i = 0; i < intervals; i++) {
            held[i + 1] = held[i] + at(&in[1], i);
            fits &= at(&in[1], i) >= 0;
        }
        numbers = held[intervals];
    }
    if (!fits || (wanted > 0 && (furthest >= blocks || numbers / size < blocks))) {
        PyErr_SetString(PyExc_ValueError, "loops lead out of the blocks");
        goto end;
    }
    int64_t meets = wanted;
    if (!as_they_are) {
        first = PyMem_RawMalloc(8 * (size_t)wanted + 1);
        if (first == NULL) {
            PyErr_NoMemory();
            goto end;
        }
        meets = wanted > 0 ? find_blocks(in, held, first, blocks, size) : 0;
    }
    grown = PyMem_RawMalloc(16 * (size_t)meets + 1);
    if (grown == NULL) {
        PyErr_NoMemory();
        goto end;
    }
    Joined joined = {grown, grown + meets, 0, 0};
    if (wanted > 0)
        in_loops(&joined, in, held, as_they_are ? (const int64_t *)in[0].first : first, size);
    joined_columns(&joined, results);
end:
    PyMem_RawFree(held);
    PyMem_RawFree(first);
    PyMem_RawFree(grown);
    let_go(in, 5);
    if (PyErr_Occurred()) {
        for (int number = 0; number < 3; number++)
            Py_CLEAR(results[number]);
        return NULL;
    }
    return together(results, 3);
}

/* Find for each interval the first piece that ends behind its begin, and count those that it
   touches; give how many that are in all. */
static int64_t meet(const Column *begins, const Column *ends, const Column *piece_begins,
                    const Column *piece_ends, int64_t *first, int64_t *counts)
{
    Py_ssize_t place = 0, last = piece_begins->count;
    int64_t total = 0;
    for (Py_ssize_t i = 0; i < begins->count; i++) {
        int64_t end = at(ends, i);
        place = above(piece_ends, place, at(begins, i));
        Py_ssize_t piece = place;
        while (piece < last && at(piece_begins, piece) < end)
            piece++;
        first[i] = place;
        counts[i] = piece - place;
        total += piece - place;
    }
    return total;
}

/* crossings(begins, ends, piece_begins, piece_ends): as in intervals.py */
static PyObject *crossings(PyObject *module, PyObject *const *given, Py_ssize_t arguments)
{
    Column in[4];
    PyObject *results[2] = {NULL, NULL};
    int64_t *first = NULL;
    if (take(given, arguments, in, 4) < 0)
        return NULL;
    if (!alike(in, 0, 1) || !alike(in, 2, 3))
        goto end;
    Py_ssize_t count = in[0].count;
    first = PyMem_RawMalloc(16 * (size_t)count + 1);
    if (first == NULL) {
        PyErr_NoMemory();
        goto end;
    }
    int64_t *counts = first + count, total;
    total = meet(&in[0], &in[1], &in[2], &in[3], first, counts);
    results[0] = fresh(8 * total);
    results[1] = fresh(8 * total);
    if (results[0] == NULL || results[1] == NULL)
        goto end;
    int64_t *interval = numbers_of(results[0]), *piece = numbers_of(results[1]);
    for (Py_ssize_t i = 0; i < count; i++)
        for (int64_t k = 0; k < counts[i]; k++) {
            *interval++ = i;
            *piece++ = first[i] + k;
        }
end:
    PyMem_RawFree(first);
    let_go(in, 4);
    return together(results, 2);
}

/* parts(begins, lengths, piece_begins, piece_ends, size): where elements of `size` bytes lie in pieces
   of bytes: the positions [low, high) of a tensor of these intervals, the piece of each, and how many
   elements behind its begin */
static PyObject *parts(PyObject *module, PyObject *const *given, Py_ssize_t arguments)
{
    Column in[5];
    PyObject *results[4] = {NULL};
    int64_t *out[4], *counts = NULL;
    if (take(given, arguments, in, 5) < 0)
        return NULL;
    if (!alike(in, 0, 1) || !alike(in, 2, 3))
        goto end;
    Py_ssize_t count = in[0].count, last = in[2].count, place = 0;
    int64_t size = in[4].count == 1 ? at(&in[4], 0) : 0, total = 0, position = 0;
    if (size < 1) {
        PyErr_SetString(PyExc_ValueError, "the size of an element is 1 or more");
        goto end;
    }
    counts = PyMem_RawMalloc(16 * (size_t)count + 1);
    if (counts == NULL) {
        PyErr_NoMemory();
        goto end;
    }
    int64_t *first = counts + count;
    for (Py_ssize_t i = 0; i < count; i++) {
        int64_t begin = at(&in[0], i) * size, end = begin + at(&in[1], i) * size;
        place = above(&in[3], place, begin);
        Py_ssize_t piece = place;
        while (piece < last && at(&in[2], piece) < end)
            piece++;
        first[i] = place;
        counts[i] = piece - place;
        total += counts[i];
    }
    for (int number = 0; number < 4; number++) {
        results[number] = fresh(8 * total);
        if (results[number] == NULL)
            goto end;
        out[number] = numbers_of(results[number]);
    }
    for (Py_ssize_t i = 0, row = 0; i < count; i++) {
        int64_t begin = at(&in[0], i) * size, end = begin + at(&in[1], i) * size;
        for (int64_t piece = first[i]; piece < first[i] + counts[i]; piece++, row++) {
            int64_t mapped = at(&in[2], piece), final = at(&in[3], piece);
            int64_t low = begin > mapped ? begin : mapped, high = end < final ? end : final;
            out[0][row] = position + down(low, size) - at(&in[0], i);
            out[1][row] = position + down(high, size) - at(&in[0], i);
            out[2][row] = piece;
            out[3][row] = down(low - mapped, size);
        }
        position += at(&in[1], i);
    }
end:
    PyMem_RawFree(counts);
    let_go(in, 5);
    return together(results, 4);
}

/* met(begins, lengths, piece_begins, piece_ends, size): for each piece of bytes, whether one of the
   intervals of elements of `size` bytes has a byte of it */
static PyObject *met(PyObject *module, PyObject *const *given, Py_ssize_t arguments)
{
    Column in[5];
    PyObject *results[1] = {NULL};
    if (take(given, arguments, in, 5) < 0)
        return NULL;
    if (!alike(in, 0, 1) || !alike(in, 2, 3))
        goto end;
    Py_ssize_t pieces = in[2].count, place = 0;
    int64_t size = in[4].count == 1 ? at(&in[4], 0) : 0;
    if (size < 1) {
        PyErr_SetString(PyExc_ValueError, "the size of an element is 1 or more");
        goto end;
    }
    results[0] = fresh(pieces);
    if (results[0] == NULL)
        goto end;
    char *flags = memset(PyByteArray_AS_STRING(results[0]), 0, pieces);
    for (Py_ssize_t i = 0; i < in[0].count; i++) {
        int64_t begin = at(&in[0], i) * size, end = begin + at(&in[1], i) * size;
        place = end > begin ? above(&in[3], place, begin) : place;
        for (Py_ssize_t piece = place; piece < pieces && at(&in[2], piece) < end; piece++)
            flags[piece] |= end > begin && at(&in[3], piece) > at(&in[2], piece);
    }
end:
    let_go(in, 5);
    return together(results, 1);
}

/* Give the highest number and one, INT64_MAX where one is negative; 0 of none. */
static int64_t above_all(const Column *numbers)
{
    int64_t most = 0;
    for (Py_ssize_t i = 0; i < numbers->count; i++) {
        int64_t value = at(numbers, i);
        most = value < 0 ? INT64_MAX : value >= most ? value + 1 : most;
    }
    return most;
}

/* Tell whether numbers below `most` are better sorted than counted. */
static int sparse(int64_t most, Py_ssize_t count)
{
    return most > COUNTED * (int64_t)count && most > COUNTED_AT_LEAST;
}

/* kinds(numbers): the different numbers, ascending, and which of them each is. None where they are
   so large that sorting is better, or one is negative. */
static PyObject *kinds(PyObject *module, PyObject *const *given, Py_ssize_t arguments)
{
    Column in[1];
    PyObject *results[2] = {NULL, NULL};
    int64_t number = 0;
    if (take(given, arguments, in, 1) < 0)
        return NULL;
    Py_ssize_t count = in[0].count;
    int64_t most = above_all(&in[0]);
    if (sparse(most, count)) {
        let_go(in, 1);
        Py_RETURN_NONE;
    }
    int64_t *rank = PyMem_RawCalloc(most + 1, 8);
    if (rank == NULL) {
        PyErr_NoMemory();
        goto end;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        rank[at(&in[0], i)] = 1;
    for (int64_t value = 0; value < most; value++)
        number += rank[value];
    results[0] = fresh(8 * number);
    results[1] = fresh(8 * count);
    if (results[0] == NULL || results[1] == NULL)
        goto end;
    number = 0;
    for (int64_t value = 0; value < most; value++)
        if (rank[value]) {
            numbers_of(results[0])[number] = value;
            rank[value] = number++;
        }
    for (Py_ssize_t i = 0; i < count; i++)
        numbers_of(results[1])[i] = rank[at(&in[0], i)];
end:
    PyMem_RawFree(rank);
    let_go(in, 1);
    return together(results, 2);
}

/* summed(first, second, weight): the pairs, sorted, and the sum of the weights of each: first, second
   and sum. None where counting is no better than sorting. */
static PyObject *summed(PyObject *module, PyObject *const *given, Py_ssize_t arguments)
{
    Column in[3];
    PyObject *results[3] = {NULL, NULL, NULL};
    int64_t *rank = NULL, *sums = NULL, *firsts;
    char *there;
    if (take(given, arguments, in, 3) < 0)
        return NULL;
    if (!alike(in, 0, 2))
        goto end;
    Py_ssize_t count = in[0].count;
    int64_t most = above_all(&in[0]), stride = above_all(&in[1]), rows = 0, pairs = 0;
    if (sparse(most, count) || sparse(stride, count)) {
        let_go(in, 3);
        Py_RETURN_NONE;
    }
    rank = PyMem_RawCalloc(2 * (size_t)most + 1, 8);
    if (rank == NULL)
        goto memory;
    firsts = rank + most;
    for (Py_ssize_t i = 0; i < count; i++)
        rank[at(&in[0], i)] = 1;
    for (int64_t value = 0; value < most; value++)
        if (rank[value]) {
            firsts[rows] = value;
            rank[value] = rows++;
        }
    if (rows > 0 && stride > INT64_MAX / 16 / rows)
        goto memory;
    int64_t room = rows * stride;
    if (sparse(room, count)) {
        PyMem_RawFree(rank);
        let_go(in, 3);
        Py_RETURN_NONE;
    }
    sums = PyMem_RawCalloc((size_t)room + 1, 9);
    if (sums == NULL)
        goto memory;
    there = (char *)(sums + room);
    for (Py_ssize_t i = 0; i < count; i++) {
        int64_t place = rank[at(&in[0], i)] * stride + at(&in[1], i);
        pairs += !there[place];
        there[place] = 1;
        sums[place] += at(&in[2], i);
    }
    for (int number = 0; number < 3; number++)
        if ((results[number] = fresh(8 * pairs)) == NULL)
            goto end;
    int64_t *out[3] = {numbers_of(results[0]), numbers_of(results[1]), numbers_of(results[2])};
    for (int64_t row = 0; row < rows; row++)
        for (int64_t second = 0; second < stride; second++)
            if (there[row * stride + second]) {
                *out[0]++ = firsts[row];
                *out[1]++ = second;
                *out[2]++ = sums[row * stride + second];
            }
    goto end;
memory:
    PyErr_NoMemory();
end:
    PyMem_RawFree(rank);
    PyMem_RawFree(sums);
    let_go(in, 3);
    if (PyErr_Occurred()) {
        for (int number = 0; number < 3; number++)
            Py_CLEAR(results[number]);
        return NULL;
    }
    return together(results, 3);
}

/* by_tiles(tile, size, rows, word): the tiles, ascending, the bytes and the rows of each, and how many
   of its pieces are no whole words in each row. None where tiles are so high that sorting is better. */
static PyObject *by_tiles(PyObject *module, PyObject *const *given, Py_ssize_t arguments)
{
    Column in[4];
    PyObject *results[4] = {NULL};
    int64_t *sums = NULL;
    if (take(given, arguments, in, 4) < 0)
        return NULL;
    if (!alike(in, 0, 2))
        goto end;
    Py_ssize_t count = in[0].count;
    int64_t most = above_all(&in[0]), word = in[3].count == 1 ? at(&in[3], 0) : 0, tiles = 0;
    if (word < 1) {
        PyErr_SetString(PyExc_ValueError, "a word has a byte or more");
        goto end;
    }
    if (sparse(most, count)) {
        let_go(in, 4);
        Py_RETURN_NONE;
    }
    sums = PyMem_RawCalloc(4 * (size_t)most + 1, 8);
    if (sums == NULL) {
        PyErr_NoMemory();
        goto end;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        int64_t *here = sums + 4 * at(&in[0], i), size = at(&in[1], i), rows = at(&in[2], i);
        tiles += !here[0];
        here[0] = 1;
        here[1] += size;
        here[2] += rows;
        here[3] += size % (word * (rows > 1 ? rows : 1)) > 0;
    }
    for (int number = 0; number < 4; number++)
        if ((results[number] = fresh(8 * tiles)) == NULL)
            goto end;
    Py_ssize_t row = 0;
    for (int64_t tile = 0; tile < most; tile++)
        if (sums[4 * tile]) {
            numbers_of(results[0])[row] = tile;
            for (int number = 1; number < 4; number++)
                numbers_of(results[number])[row] = sums[4 * tile + number];
            row++;
        }
end:
    PyMem_RawFree(sums);
    let_go(in, 4);
    if (PyErr_Occurred()) {
        for (int number = 0; number < 4; number++)
            Py_CLEAR(results[number]);
        return NULL;
    }
    return together(results, 4);
}

/* overlap(begins, lengths): whether a number lies in two of the intervals; None where their numbers
   lie too far apart to be marked one by one */
static PyObject *overlap(PyObject *module, PyObject *const *given, Py_ssize_t arguments)
{
    Column in[2];
    PyObject *result = NULL;
    uint64_t *marks = NULL;
    if (take(given, arguments, in, 2) < 0)
        return NULL;
    if (!alike(in, 0, 1))
        goto end;
    Py_ssize_t count = in[0].count, i;
    int64_t low = INT64_MAX, high = INT64_MIN, total = 0;
    int ordered = 1;
    for (i = 0; i < count; i++) {
        int64_t begin = at(&in[0], i), end = begin + at(&in[1], i);
        ordered &= i == 0 || begin >= at(&in[0], i - 1) + at(&in[1], i - 1);
        low = begin < low ? begin : low;
        high = end > high ? end : high;
        total += end - begin;
    }
    if (ordered || total > high - low) {
        result = PyBool_FromLong(!ordered);
        goto end;
    }
    if ((high - low) / 64 > 16 * (int64_t)count + 65536) {
        result = Py_NewRef(Py_None);
        goto end;
    }
    marks = PyMem_RawCalloc((high - low) / 64 + 1, 8);
    if (marks == NULL) {
        PyErr_NoMemory();
        goto end;
    }
    for (i = 0; i < count; i++) {
        int64_t number = at(&in[0], i) - low, end = number + at(&in[1], i);
        for (; number < end; number++) {
            uint64_t mark = (uint64_t)1 << (number & 63);
            if (marks[number >> 6] & mark) {
                result = Py_NewRef(Py_True);
                goto end;
            }
            marks[number >> 6] |= mark;
        }
    }
    result = Py_NewRef(Py_False);
end:
    PyMem_RawFree(marks);
    let_go(in, 2);
    return result;
}

/* ---- what the edges of vertices touch ---- */

typedef struct { int64_t home, size; } Part;

/* Sort parts by home, joining the runs that they come in; `other` has room for as many. Gives NULL
   where two are seen to overlap, which mostly is so in the first two runs. */
static Part *sorted(Part *parts, Part *other, Py_ssize_t count)
{
    for (;;) {
        Py_ssize_t out = 0, runs = 0, left = 0;
        while (left < count) {
            Py_ssize_t middle = left + 1, right;
            while (middle < count && parts[middle].home >= parts[middle - 1].home)
                middle++;
            if (middle == count && left == 0)
                return parts;
            right = middle < count ? middle + 1 : middle;
            while (right < count && parts[right].home >= parts[right - 1].home)
                right++;
            Py_ssize_t one = left, two = middle;
            while (one < middle && two < right) {
                int take_two = parts[two].home < parts[one].home;
                const Part *next = take_two ? &parts[two] : &parts[one];
                if (out > left && next->home < other[out - 1].home + other[out - 1].size)
                    return NULL;
                other[out++] = *next;
                two += take_two;
                one += !take_two;
            }
            memcpy(other + out, parts + one, (middle - one) * sizeof *parts);
            out += middle - one;
            memcpy(other + out, parts + two, (right - two) * sizeof *parts);
            out += right - two;
            left = right;
            runs++;
        }
        Part *swap = parts;
        parts = other;
        other = swap;
        if (runs <= 1)
            return parts;
    }
}

/* Tell whether an edge comes in the order of the senders' memory, and is copied then. */
static int scattered(Part *parts, Part *other, Py_ssize_t count, const char *breaks)
{
    Py_ssize_t fragments = 0, runs = 0;
    int64_t reached = -1;
    int small = 0, again = 0;
    for (Py_ssize_t i = 0; i < count; i++)  /* the parts of a fragment become one */
        if (breaks[i])
            parts[fragments++] = parts[i];
        else
            parts[fragments - 1].size += parts[i].size;
    for (Py_ssize_t i = 0; i < fragments; i++)
        small |= parts[i].size < SHORT_FRAGMENT;
    parts = sorted(parts, other, fragments);
    if (parts == NULL)
        return 1;
    for (Py_ssize_t i = 0; i < fragments && !again; i++) {
        int64_t end = parts[i].home + parts[i].size;
        runs += parts[i].home > reached;
        again = parts[i].home < reached;
        reached = end > reached ? end : reached;
    }
    return again || (small && 2 * runs <= fragments);
}

enum { BEGIN, END, EDGE, TILE, OFTEN, MAP_BEGIN, MAP_END, MAP_TILE, MAP_VARIABLE, MAP_HOME };

typedef struct { int64_t low, high, home, owner, variable, times; } Piece;

/* The edges that rows of columns make, one at a time: those of one edge follow one another. */
typedef struct {
    Column in[MOST_COLUMNS];
    Py_ssize_t row, place;                  /* the next row, and the piece of the mapping near it */
    Py_ssize_t count, room;                 /* of the pieces of the edge */
    Piece *pieces;
    Part *parts;                            /* room for twice as many */
    char *breaks;
    int64_t *slots;                         /* of a hash, as many as a power of two */
    Py_ssize_t slot_room;
    int64_t user;
    int remote, arranged;
} Edges;

static int take_edges(PyObject *const *given, Py_ssize_t arguments, Edges *edges)
{
    memset(edges, 0, sizeof *edges);
    if (take(given, arguments, edges->in, MOST_COLUMNS) < 0)
        return -1;
    if (alike(edges->in, BEGIN, OFTEN) && alike(edges->in, MAP_BEGIN, MAP_HOME))
        return 0;
    let_go(edges->in, MOST_COLUMNS);
    return -1;
}

static void let_go_of_edges(Edges *edges)
{
    PyMem_RawFree(edges->pieces);
    PyMem_RawFree(edges->parts);
    PyMem_RawFree(edges->breaks);
    PyMem_RawFree(edges->slots);
    let_go(edges->in, MOST_COLUMNS);
}

/* Make room for more pieces of the edge; give 0, or -1 with an error. */
static int more_pieces(Edges *edges)
{
    Py_ssize_t room = 2 * edges->room + 64;
    Piece *pieces = PyMem_RawRealloc(edges->pieces, (size_t)room * sizeof *pieces);
    edges->pieces = pieces == NULL ? edges->pieces : pieces;
    Part *parts = PyMem_RawRealloc(edges->parts, 2 * (size_t)room * sizeof *parts);
    edges->parts = parts == NULL ? edges->parts : parts;
    char *breaks = PyMem_RawRealloc(edges->breaks, (size_t)room);
    edges->breaks = breaks == NULL ? edges->breaks : breaks;
    if (pieces == NULL || parts == NULL || breaks == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    edges->room = room;
    return 0;
}

/* Tell whether a short fragment is among those of an edge. */
static int any_short(const Edges *edges)
{
    int64_t size = SHORT_FRAGMENT;
    for (Py_ssize_t i = 0; i < edges->count; i++) {
        if (edges->breaks[i] && size < SHORT_FRAGMENT)
            return 1;
        size = (edges->breaks[i] ? 0 : size) + edges->parts[i].size;
    }
    return size < SHORT_FRAGMENT;
}

/* Tell whether an edge takes in a byte twice; -1 where sorting tells it sooner. The places of bytes,
   in steps that all its pieces are wholes of, go into a hash. */
static int twice(Edges *edges)
{
    uint64_t steps = 0;
    int64_t total = 0;
    for (Py_ssize_t i = 0; i < edges->count; i++) {
        int64_t size = edges->parts[i].size;
        if (size <= 0)
            return -1;
        steps |= (uint64_t)edges->pieces[i].low | (uint64_t)size;
        total += size;
    }
    int shift = 0, bits = 1;
    for (; !(steps >> shift & 1); shift++)
        ;
    if (total >> shift > STEPS_AT_MOST * edges->count)
        return -1;
    for (; (int64_t)1 << bits < 2 * (total >> shift); bits++)
        ;
    Py_ssize_t room = (Py_ssize_t)1 << bits;
    if (room > edges->slot_room) {
        int64_t *slots = PyMem_RawRealloc(edges->slots, (size_t)room * sizeof *slots);
        if (slots == NULL)
            return -1;
        edges->slots = slots;
        edges->slot_room = room;
    }
    memset(edges->slots, -1, (size_t)room * sizeof *edges->slots);
    for (Py_ssize_t i = 0; i < edges->count; i++) {
        int64_t step = edges->pieces[i].low >> shift, last = edges->pieces[i].high >> shift;
        for (; step < last; step++) {
            uint64_t slot = (uint64_t)step * 0x9E3779B97F4A7C15u >> (64 - bits);
            while (edges->slots[slot] >= 0) {
                if (edges->slots[slot] == step)
                    return 1;
                slot = (slot + 1) & ((uint64_t)room - 1);
            }
            edges->slots[slot] = step;
        }
    }
    return 0;
}

/* Find where rows of an edge begin, and whether it is remote and whether it is arranged. */
static void mark(Edges *edges)
{
    int remote = 0, falls = 0, several = 0, arranged = 0;
    Py_ssize_t count = edges->count;
    Part *parts = edges->parts;
    for (Py_ssize_t i = 0; i < count; i++) {
        const Piece *piece = &edges->pieces[i];
        parts[i] = (Part){piece->home, piece->high - piece->low};
        remote |= piece->owner != edges->user;
        int64_t reached = i > 0 ? parts[i - 1].home + parts[i - 1].size : -1;
        edges->breaks[i] = reached != piece->home;
        falls |= piece->home < reached;
        several |= i > 0 && edges->breaks[i];
    }
    if (!remote)
        arranged = several;
    else if (falls) {
        arranged = any_short(edges) ? -1 : twice(edges);
        if (arranged < 0)
            arranged = scattered(parts, parts + count, count, edges->breaks);
    }
    if (remote && !arranged && count > 1)
        memset(edges->breaks + 1, 0, count - 1);
    edges->remote = remote;
    edges->arranged = arranged;
}

/* Read the next edge; give 1, 0 where there is none, or -1 with an error. */
static int next_edge(Edges *edges)
{
    const Column *in = edges->in;
    Py_ssize_t rows = in[BEGIN].count, mapped = in[MAP_BEGIN].count, begun = edges->row;
    if (begun == rows)
        return 0;
    edges->user = at(&in[TILE], begun);
    edges->count = 0;
    for (; edges->row < rows && at(&in[EDGE], edges->row) == at(&in[EDGE], begun); edges->row++) {
        int64_t begin = at(&in[BEGIN], edges->row), end = at(&in[END], edges->row);
        edges->place = above(&in[MAP_END], edges->place, begin);
        for (Py_ssize_t piece = edges->place; piece < mapped; piece++) {
            int64_t first = at(&in[MAP_BEGIN], piece), last = at(&in[MAP_END], piece);
            if (first >= end)
                break;
            if (edges->count == edges->room && more_pieces(edges) < 0)
                return -1;
            int64_t low = begin > first ? begin : first;
            edges->pieces[edges->count++] = (Piece){
                low, end < last ? end : last, at(&in[MAP_HOME], piece) + low - first,
                at(&in[MAP_TILE], piece), at(&in[MAP_VARIABLE], piece),
                at(&in[OFTEN], edges->row),
            };
        }
    }
    mark(edges);
    return 1;
}

/* Columns of numbers, then of flags, that grow; `guess` is how many rows there may be. */
typedef struct { PyObject **columns; int numbers, flags; Py_ssize_t guess, used, room; } Table;

static int resize(Table *table, Py_ssize_t rows)
{
    for (int number = 0; number < table->numbers + table->flags; number++) {
        PyObject **column = &table->columns[number];
        Py_ssize_t bytes = (number < table->numbers ? 8 : 1) * rows;
        if (*column == NULL ? (*column = fresh(bytes)) == NULL : PyByteArray_Resize(*column, bytes) < 0)
            return -1;
    }
    table->room = rows;
    return 0;
}

/* Make room for so many rows more; give 0, or -1 with an error. */
static int more_rows(Table *table, Py_ssize_t count)
{
    Py_ssize_t needed = table->used + count, wanted = needed + needed / 4 + 64;
    if (needed <= table->room)
        return 0;
    return resize(table, table->room == 0 && wanted < table->guess ? table->guess : wanted);
}

enum { LOW, HIGH, OWNER, USER, VARIABLE, HOME, TIMES, TOUCH };

/* Add rows for the pieces of an edge: those of a Touch, each as often as it is taken in, or once
   with a column that tells how often. */
static int add_pieces(Table *table, const Edges *edges)
{
    int once = table->numbers > TIMES;
    int64_t *out[TOUCH] = {NULL};
    char *flags[3] = {NULL};
    for (Py_ssize_t i = 0; i < edges->count; i++) {
        const Piece *piece = &edges->pieces[i];
        int64_t again = once ? 1 : piece->times;
        if (i == 0 || table->used + again > table->room) {
            if (more_rows(table, again > edges->count ? again : edges->count) < 0)
                return -1;
            for (int column = 0; column < table->numbers; column++)
                out[column] = numbers_of(table->columns[column]);
            for (int flag = 0; flag < table->flags; flag++)
                flags[flag] = PyByteArray_AS_STRING(table->columns[table->numbers + flag]);
        }
        for (; again > 0; again--) {
            Py_ssize_t row = table->used++;
            out[LOW][row] = piece->low;
            out[HIGH][row] = piece->high;
            out[OWNER][row] = piece->owner;
            out[USER][row] = edges->user;
            out[VARIABLE][row] = piece->variable;
            out[HOME][row] = piece->home;
            flags[0][row] = (char)edges->remote;
            flags[1][row] = edges->breaks[i];
            if (once) {
                out[TIMES][row] = piece->times;
                flags[2][row] = (char)edges->arranged;
            }
        }
    }
    return 0;
}

/* touch(begin, end, edge, tile, times, mapping's begin, end, tile, variable, home): the columns of a
   Touch, its flags behind how often each piece is taken in */
static PyObject *touch(PyObject *module, PyObject *const *given, Py_ssize_t arguments)
{
    Edges edges;
    PyObject *results[TOUCH + 3] = {NULL};
    int state;
    if (take_edges(given, arguments, &edges) < 0)
        return NULL;
    Table all = {results, TOUCH, 3, edges.in[BEGIN].count, 0, 0};
    while ((state = next_edge(&edges)) > 0)
        if ((state = add_pieces(&all, &edges)) < 0)
            break;
    if (state < 0 || resize(&all, all.used) < 0)
        for (int number = 0; number < TOUCH + 3; number++)
            Py_CLEAR(results[number]);
    let_go_of_edges(&edges);
    return PyErr_Occurred() ? NULL : together(results, TOUCH + 3);
}

/* Add what an edge brings as it is, joined with what it follows or what has just been brought. */
static int add_brought(Table *table, const Edges *edges)
{
    if (more_rows(table, edges->count) < 0)
        return -1;
    int64_t *tile = numbers_of(table->columns[0]), *low = numbers_of(table->columns[1]);
    int64_t *high = numbers_of(table->columns[2]), user = edges->user;
    Py_ssize_t used = table->used;
    for (Py_ssize_t i = 0; i < edges->count; i++) {
        int64_t begin = edges->pieces[i].low, end = edges->pieces[i].high;
        if (used > 0 && tile[used - 1] == user && begin >= low[used - 1] && begin <= high[used - 1]) {
            high[used - 1] = end > high[used - 1] ? end : high[used - 1];
            continue;
        }
        tile[used] = user;
        low[used] = begin;
        high[used++] = end;
    }
    table->used = used;
    return 0;
}

/* Add the variables of an edge that is at hand, but for the one that was the last. */
static int add_variables(Table *table, const Edges *edges)
{
    for (Py_ssize_t i = 0; i < edges->count; i++) {
        int64_t variable = edges->pieces[i].variable;
        if (table->used > 0 && numbers_of(table->columns[0])[table->used - 1] == variable)
            continue;
        if (more_rows(table, 1) < 0)
            return -1;
        numbers_of(table->columns[0])[table->used++] = variable;
    }
    return 0;
}

enum { SPANS = 3, AT_HAND = 1, ARRANGED = TIMES + 2 };

/* brought(as of touch): tile, begin and end of what comes as it is, variables at hand, and of what
   is arranged the columns of a Touch but for its last flag, each piece as often as it is taken in */
static PyObject *brought(PyObject *module, PyObject *const *given, Py_ssize_t arguments)
{
    Edges edges;
    PyObject *results[SPANS + AT_HAND + ARRANGED] = {NULL};
    int state;
    if (take_edges(given, arguments, &edges) < 0)
        return NULL;
    Py_ssize_t rows = edges.in[BEGIN].count;
    Table spans = {results, SPANS, 0, rows, 0, 0}, at_hand = {results + SPANS, AT_HAND, 0, 0, 0, 0};
    Table arranged = {results + SPANS + AT_HAND, TIMES, 2, rows, 0, 0};
    while ((state = next_edge(&edges)) > 0) {
        state = edges.arranged ? add_pieces(&arranged, &edges)
              : edges.remote ? add_brought(&spans, &edges) : add_variables(&at_hand, &edges);
        if (state < 0)
            break;
    }
    if (state < 0 || resize(&spans, spans.used) < 0 || resize(&at_hand, at_hand.used) < 0
        || resize(&arranged, arranged.used) < 0)
        for (int number = 0; number < SPANS + AT_HAND + ARRANGED; number++)
            Py_CLEAR(results[number]);
    let_go_of_edges(&edges);
    return PyErr_Occurred() ? NULL : together(results, SPANS + AT_HAND + ARRANGED);
}

/* ---- what tiles need of others ---- */

typedef struct { int64_t begin, end; Py_ssize_t row; } Span;

static Span *merged(Span *low, Span *middle, Span *high, Span *out)
{
    Span *one = low, *two = middle;
    while (one < middle && two < high)
        *out++ = two->begin < one->begin ? *two++ : *one++;
    memcpy(out, one, (char *)middle - (char *)one);
    out += middle - one;
    memcpy(out, two, (char *)high - (char *)two);
    return out + (high - two);
}

/* Sort spans by begin, those alike as they come, joining the runs that they come in; `other` has room
   for as many. Gives where they are then. */
static Span *by_begin(Span *spans, Span *other, Py_ssize_t count)
{
    for (Py_ssize_t runs = 2; runs > 1;) {
        Span *left = spans, *last = spans + count, *out = other;
        for (runs = 0; left < last; runs++) {
            Span *middle = left + 1, *right;
            while (middle < last && middle->begin >= middle[-1].begin)
                middle++;
            if (middle == last && left == spans)
                return spans;
            right = middle < last ? middle + 1 : middle;
            while (right < last && right->begin >= right[-1].begin)
                right++;
            out = merged(left, middle, right, out);
            left = right;
        }
        out = spans;
        spans = other;
        other = out;
    }
    return spans;
}

/* Put spans [begin, end) of rows behind those of lower tiles, and give where each tile's begin;
   NULL with an error. Behind `held` the most of a tile have room once more. */
static Py_ssize_t *by_tile(const Column *tile, const Column *begin, const Column *end, Span **held,
                           int64_t *tiles)
{
    Py_ssize_t count = tile->count, *starts = NULL;
    *held = NULL;
    *tiles = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        int64_t number = at(tile, i);
        *tiles = number >= *tiles ? number + 1 : *tiles;
        if (number < 0 || number > INT32_MAX) {
            PyErr_Format(PyExc_IndexError, "row %zd is of no tile", i);
            return NULL;
        }
    }
    starts = PyMem_RawCalloc((size_t)*tiles + 2, sizeof *starts);
    if (starts == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    Py_ssize_t most = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_ssize_t here = ++starts[at(tile, i) + 2];
        most = here > most ? here : most;
    }
    *held = PyMem_RawMalloc((size_t)(count + most) * sizeof **held + 1);
    if (*held == NULL) {
        PyMem_RawFree(starts);
        PyErr_NoMemory();
        return NULL;
    }
    for (int64_t number = 2; number <= *tiles; number++)
        starts[number] += starts[number - 1];
    for (Py_ssize_t i = 0; i < count; i++)
        (*held)[starts[at(tile, i) + 1]++] = (Span){at(begin, i), at(end, i), i};
    return starts;
}

/* Join the spans of each tile that lie together or overlap; one stays in the place of each, with the
   row of its first. Give how many there are, and count in `starts` those of each tile. */
static Py_ssize_t join_spans(Span *held, Py_ssize_t *starts, int64_t tiles, Py_ssize_t count)
{
    Py_ssize_t kept = 0, low = 0;
    for (int64_t tile = 0; tile < tiles; tile++) {
        Py_ssize_t high = starts[tile + 1], first = kept;
        Span *spans = by_begin(held + low, held + count, high - low);
        for (Py_ssize_t i = 0; i < high - low; i++)
            if (i == 0 || spans[i].begin > held[kept - 1].end)
                held[kept++] = spans[i];
            else if (spans[i].end > held[kept - 1].end)
                held[kept - 1].end = spans[i].end;
        starts[tile] = kept - first;
        low = high;
    }
    return kept;
}

/* united(tile, begin, end): what each tile has of numbers [begin, end), those that lie together or
   overlap as one, by tile and begin: tile, begin, end, and the row of the first */
static PyObject *united(PyObject *module, PyObject *const *given, Py_ssize_t arguments)
{
    Column in[3];
    PyObject *results[4] = {NULL};
    Span *held = NULL;
    Py_ssize_t *starts = NULL;
    int64_t tiles;
    if (take(given, arguments, in, 3) < 0)
        return NULL;
    if (!alike(in, 0, 2) || (starts = by_tile(&in[0], &in[1], &in[2], &held, &tiles)) == NULL)
        goto end;
    Py_ssize_t kept = join_spans(held, starts, tiles, in[0].count);
    for (int column = 0; column < 4; column++)
        if ((results[column] = fresh(8 * kept)) == NULL)
            goto end;
    for (Py_ssize_t i = 0; i < kept; i++) {
        numbers_of(results[1])[i] = held[i].begin;
        numbers_of(results[2])[i] = held[i].end;
        numbers_of(results[3])[i] = held[i].row;
    }
    int64_t *owner = numbers_of(results[0]);
    for (int64_t tile = 0; tile < tiles; tile++)
        for (Py_ssize_t i = 0; i < starts[tile]; i++)
            *owner++ = tile;
end:
    PyMem_RawFree(held);
    PyMem_RawFree(starts);
    let_go(in, 3);
    if (PyErr_Occurred()) {
        for (int column = 0; column < 4; column++)
            Py_CLEAR(results[column]);
        return NULL;
    }
    return together(results, 4);
}

/* ---- what tiles exchange ---- */

typedef struct { uint32_t *slots, *times; uint32_t mask; int shift; } Kinds;

/* Give the place among the kinds of a fragment, entered where it is the first of its kind: those of
   one kind have the same `who`, begin, size, and number of times that the tile has had it before. */
static uint32_t kind_of(Kinds *kinds, const Column *in, const int64_t *who, const uint32_t *again,
                        uint32_t i)
{
    int64_t begin = at(&in[3], i), size = at(&in[2], i);
    uint64_t place = ((uint64_t)begin >> kinds->shift) + (uint64_t)who[i] * 0x9E3779B1u
                     + (uint64_t)again[i] * 0x85EBCA6Bu;
    for (place &= kinds->mask;; place = (place + 1) & kinds->mask) {
        uint32_t other = kinds->slots[place];
        if (other == 0) {
            kinds->slots[place] = i + 1;
            return place;
        }
        other--;
        if (at(&in[3], other) == begin && who[other] == who[i] && at(&in[2], other) == size
            && again[other] == again[i])
            return place;
    }
}

/* Price what the tiles exchange: cycles and bytes of code of each, and the sums of what has code.
   `rules`: tiles of a bus, bytes a cycle, whether each tile receives into a row, issue slots of a
   fragment that is received and sent, then bytes of code of what `sums` counts. `out`: as
   `exchange` gives it. */
static void price(const Column *latency, const Column *rules, int64_t *const *out,
                  const int64_t *shared)
{
    int64_t bus = at(rules, 0), rate = at(rules, 1), in_rows = at(rules, 2);
    for (Py_ssize_t tile = 0; tile < latency->count; tile++) {
        int64_t sent = out[0][tile], received = out[1][tile], alike = shared[tile / bus];
        int64_t arriving = received - (alike - alike / bus);
        int64_t payload = ((sent > arriving ? sent : arriving) + rate - 1) / rate;
        int64_t sends = out[3][tile], receives = out[2][tile], begun = receives > 0;
        int64_t takes = at(rules, 3) * receives, gives = at(rules, 4) * sends;
        int64_t control = takes > gives ? takes : gives;
        int64_t counts[5] = {receives, in_rows ? begun : receives, begun, sends, sends > 0};
        if (sent > 0 || received > 0)
            out[2][tile] = at(latency, tile) + (payload > control ? payload : control);
        else
            out[2][tile] = 0;
        out[3][tile] = 0;
        for (int kind = 0; kind < 5; kind++) {
            out[3][tile] += at(rules, 5 + kind) * counts[kind];
            out[4][kind] += counts[kind];
        }
    }
}

/* exchange(source, destination, size, begin, latency, group, rules): by tile, what is sent and
   received in bytes, each kind of fragment being sent once, and what that takes in cycles and bytes
   of code; then the fragments received, those in places of their own, the tiles that receive, the
   fragments sent and the tiles that send; then the bytes received by [group that sends][group that
   receives]. `latency` is the cycles of each tile before its first word, `group` its group, `rules`
   as `price` has them and the number of groups. None where fragments are not sorted by destination
   and begin. */
static PyObject *exchange(PyObject *module, PyObject *const *given, Py_ssize_t arguments)
{
    Column in[7];
    PyObject *results[6] = {NULL};
    int64_t *out[6], *who = NULL, *shared = NULL, number = 0;
    Kinds kinds = {NULL, NULL, 0, 0};
    if (take(given, arguments, in, 7) < 0)
        return NULL;
    if (!alike(in, 0, 3) || !alike(in, 4, 5))
        goto end;
    Py_ssize_t count = in[0].count, tiles = in[4].count;
    int64_t bus = in[6].count == 11 ? at(&in[6], 0) : 0, groups = bus > 0 ? at(&in[6], 10) : 0;
    uint64_t digits = 0;
    if (bus < 1 || at(&in[6], 1) < 1 || groups < 0 || groups > 1 << 12 || count > INT32_MAX / 2) {
        PyErr_SetString(PyExc_ValueError, "the tiles of a bus, bytes a cycle and groups are needed");
        goto end;
    }
    for (Py_ssize_t tile = 0; tile < tiles; tile++)
        if (at(&in[5], tile) < 0 || at(&in[5], tile) >= groups) {
            PyErr_Format(PyExc_IndexError, "tile %zd is of no group", tile);
            goto end;
        }
    for (Py_ssize_t i = 0; i < count; i++) {
        int64_t sender = at(&in[0], i), receiver = at(&in[1], i);
        if (sender < 0 || sender >= tiles || receiver < 0 || receiver >= tiles) {
            PyErr_Format(PyExc_IndexError, "fragment %zd is of no tile", i);
            goto end;
        }
        number = i == 0 ? 0 : at(&in[1], i - 1);
        if (number > receiver || (i > 0 && number == receiver && at(&in[3], i - 1) > at(&in[3], i))) {
            let_go(in, 7);
            Py_RETURN_NONE;
        }
        digits |= (uint64_t)at(&in[3], i);
    }
    while (kinds.shift < 8 && digits && !(digits >> kinds.shift & 1))
        kinds.shift++;
    for (kinds.mask = 64; kinds.mask < 2 * (uint64_t)count; kinds.mask *= 2)
        ;
    kinds.slots = PyMem_RawCalloc(2 * (size_t)kinds.mask, sizeof(uint32_t));
    who = PyMem_RawMalloc((size_t)count * 12 + 1);
    kinds.times = kinds.slots == NULL ? NULL : kinds.slots + kinds.mask;
    kinds.mask--;
    for (int column = 0; column < 6; column++) {
        Py_ssize_t rows = column < 4 ? tiles : column < 5 ? 5 : groups * groups;
        results[column] = fresh(8 * rows);
        if (results[column] == NULL)
            goto end;
        out[column] = memset(numbers_of(results[column]), 0, 8 * rows);
    }
    shared = PyMem_RawCalloc((size_t)((tiles + bus - 1) / bus) + 1, sizeof *shared);
    if (kinds.slots == NULL || who == NULL || shared == NULL) {
        PyErr_NoMemory();
        goto end;
    }
    uint32_t *again = (uint32_t *)(who + count);
    for (Py_ssize_t i = 0; i < count; i++) {
        int64_t receiver = at(&in[1], i);
        int repeats = i > 0 && receiver == at(&in[1], i - 1) && at(&in[3], i) == at(&in[3], i - 1);
        again[i] = repeats ? again[i - 1] + 1 : 0;
        who[i] = at(&in[0], i);
        out[1][receiver] += at(&in[2], i);
        out[2][receiver]++;
        out[5][at(&in[5], who[i]) * groups + at(&in[5], receiver)] += at(&in[2], i);
    }
    for (Py_ssize_t i = 0; i < count; i++)
        if (kinds.slots[kind_of(&kinds, in, who, again, i)] == (uint32_t)i + 1) {
            out[0][who[i]] += at(&in[2], i);
            out[3][who[i]]++;
        }
    memset(kinds.slots, 0, ((size_t)kinds.mask + 1) * sizeof(uint32_t));
    for (Py_ssize_t i = 0; i < count; i++)
        who[i] = at(&in[1], i) / bus;
    for (Py_ssize_t i = 0; i < count; i++) {
        int64_t times = ++kinds.times[kind_of(&kinds, in, who, again, i)];
        shared[who[i]] += times == bus ? at(&in[2], i) : times == bus + 1 ? -at(&in[2], i) : 0;
    }
    price(&in[4], &in[6], out, shared);
end:
    PyMem_RawFree(kinds.slots);
    PyMem_RawFree(who);
    PyMem_RawFree(shared);
    let_go(in, 7);
    if (PyErr_Occurred()) {
        for (int column = 0; column < 6; column++)
            Py_CLEAR(results[column]);
        return NULL;
    }
    return together(results, 6);
}

/* ---- addresses ---- */

/* highest(ends, rows, tops, on, base): above what a variable may begin on each of the tiles `on`: the
   highest of `base` and of the ends in the rows that begin at these places of `ends`. `tops` are
   the highest end of each row, in falling order: a tile that is as high is done. */
static PyObject *highest(PyObject *module, PyObject *const *given, Py_ssize_t arguments)
{
    Column in[5];
    PyObject *results[1] = {NULL};
    Py_ssize_t *low = NULL;
    if (take(given, arguments, in, 5) < 0)
        return NULL;
    if (!alike(in, 1, 2) || !alike(in, 3, 4))
        goto end;
    Py_ssize_t count = in[3].count;
    int64_t most = 0;
    for (Py_ssize_t k = 0; k < count; k++)
        if (at(&in[3], k) < 0)
            most = INT64_MAX;
        else if (at(&in[3], k) > most)
            most = at(&in[3], k);
    for (Py_ssize_t row = 0; row < in[1].count; row++)
        if (at(&in[1], row) < 0 || most >= in[0].count - at(&in[1], row)) {
            PyErr_Format(PyExc_IndexError, "row %zd is not there", row);
            goto end;
        }
    results[0] = fresh(8 * count);
    low = PyMem_RawMalloc((size_t)count * sizeof *low + 1);
    if (results[0] == NULL || low == NULL) {
        PyErr_NoMemory();
        Py_CLEAR(results[0]);
        goto end;
    }
    int64_t *out = numbers_of(results[0]);
    for (Py_ssize_t k = 0; k < count; k++) {
        out[k] = at(&in[4], k);
        low[k] = k;
    }
    for (Py_ssize_t row = 0; row < in[1].count && count > 0; row++) {
        int64_t first = at(&in[1], row), top = at(&in[2], row);
        Py_ssize_t lower = 0;
        for (Py_ssize_t place = 0; place < count; place++) {
            Py_ssize_t k = low[place];
            if (out[k] >= top)
                continue;
            int64_t end = at(&in[0], first + at(&in[3], k));
            out[k] = end > out[k] ? end : out[k];
            low[lower++] = k;
        }
        count = lower;
    }
end:
    PyMem_RawFree(low);
    let_go(in, 5);
    return together(results, 1);
}

/* ---- what a copy moves ---- */

/* The bytes of one side of a copy, one after the other, cut where the mapping changes. The intervals
   come again in loops around them, the outermost first. */
typedef struct {
    const Column *begins, *lengths, *times, *steps, *map_begin, *map_end;
    int64_t size, byte, left, part; /* of the interval are left; before the mapping changes */
    int64_t shift, turns[MOST_LOOPS];
    Py_ssize_t next, piece;
} Walk;

/* Begin the next turn of the loops; give 0 where there is none. */
static int turn(Walk *walk)
{
    walk->next = 0;
    for (Py_ssize_t loop = walk->times->count - 1; loop >= 0; loop--) {
        walk->shift += at(walk->steps, loop);
        if (++walk->turns[loop] < at(walk->times, loop))
            return 1;
        walk->shift -= at(walk->steps, loop) * walk->turns[loop];
        walk->turns[loop] = 0;
    }
    return 0;
}

/* Go on by what has been taken of a part; give 0 at the end, -1 where nothing is mapped. */
static int advance(Walk *walk, int64_t taken)
{
    walk->byte += taken;
    walk->left -= taken;
    walk->part -= taken;
    if (walk->part > 0)
        return 1;
    while (walk->left <= 0) {
        if (walk->next == walk->begins->count && (walk->next == 0 || !turn(walk)))
            return 0;
        walk->byte = (at(walk->begins, walk->next) + walk->shift) * walk->size;
        walk->left = at(walk->lengths, walk->next++) * walk->size;
    }
    walk->piece = above(walk->map_end, walk->piece, walk->byte);
    if (walk->piece == walk->map_end->count || at(walk->map_begin, walk->piece) > walk->byte)
        return -1;
    walk->part = at(walk->map_end, walk->piece) - walk->byte;
    walk->part = walk->part < walk->left ? walk->part : walk->left;
    return 1;
}

typedef struct { int64_t from, to, byte, size, count; } Flow; /* between two mapped pieces */
typedef struct { Flow *rows; Py_ssize_t *slots, count, room; } Flows; /* room: a power of two */

static Py_ssize_t slot_of(const Flows *flows, int64_t from, int64_t to)
{
    size_t mask = 2 * (size_t)flows->room - 1;
    size_t slot = ((size_t)from + (size_t)to * (size_t)0x9E3779B97F4A7C15u) & mask;
    for (;; slot = (slot + 1) & mask) {
        Py_ssize_t row = flows->slots[slot];
        if (row < 0 || (flows->rows[row].from == from && flows->rows[row].to == to))
            return (Py_ssize_t)slot;
    }
}

/* Make room for twice as many flows; give 0 without memory. */
static int grow(Flows *flows)
{
    Py_ssize_t room = flows->room ? 2 * flows->room : 256;
    Flow *rows = PyMem_RawRealloc(flows->rows, (size_t)room * sizeof *rows);
    if (rows != NULL)
        flows->rows = rows;
    Py_ssize_t *slots = PyMem_RawMalloc(2 * (size_t)room * sizeof *slots);
    if (rows == NULL || slots == NULL) {
        PyMem_RawFree(slots);
        return 0;
    }
    PyMem_RawFree(flows->slots);
    flows->slots = slots;
    flows->room = room;
    memset(slots, -1, 2 * (size_t)room * sizeof *slots);
    for (Py_ssize_t row = 0; row < flows->count; row++)
        slots[slot_of(flows, rows[row].from, rows[row].to)] = row;
    return 1;
}

/* flows(begins, lengths, times and steps of loops around them, the same of the other side, [bytes of
   an element], mapping's begin, end): for each two mapped pieces between which bytes are copied,
   both, the first byte of the source, the bytes, and in how many fragments; None where something is
   not mapped */
static PyObject *flows(PyObject *module, PyObject *const *given, Py_ssize_t arguments)
{
    Column in[11];
    PyObject *results[5] = {NULL};
    Flows all = {NULL, NULL, 0, 0};
    int there = -1, known = 0;
    if (take(given, arguments, in, 11) < 0)
        return NULL;
    for (int number = 0; number < 11; number += number == 8 ? 1 : 2)
        if (number != 8 && !alike(in, number, number + 1))
            goto end;
    int64_t size = in[8].count == 1 ? at(&in[8], 0) : 0;
    if (size < 1 || in[2].count > MOST_LOOPS || in[6].count > MOST_LOOPS) {
        PyErr_SetString(PyExc_ValueError, "an element has one size, and is in few loops");
        goto end;
    }
    Walk from = {.begins = &in[0], .lengths = &in[1], .times = &in[2], .steps = &in[3],
                 .map_begin = &in[9], .map_end = &in[10], .size = size};
    Walk to = {.begins = &in[4], .lengths = &in[5], .times = &in[6], .steps = &in[7],
               .map_begin = &in[9], .map_end = &in[10], .size = size};
    int64_t taken = 0;
    for (;;) {
        there = advance(&from, taken);
        known = advance(&to, taken);
        if (there != 1 || known != 1)
            break;
        taken = from.part < to.part ? from.part : to.part;
        if (all.count == all.room && !grow(&all)) {
            PyErr_NoMemory();
            goto end;
        }
        Py_ssize_t slot = slot_of(&all, from.piece, to.piece);
        if (all.slots[slot] < 0) {
            all.rows[all.count] = (Flow){from.piece, to.piece, from.byte, 0, 0};
            all.slots[slot] = all.count++;
        }
        all.rows[all.slots[slot]].size += taken;
        all.rows[all.slots[slot]].count++;
    }
    if (there != 0 || known != 0)
        goto end;
    for (int number = 0; number < 5; number++) {
        results[number] = fresh(8 * all.count);
        if (results[number] == NULL)
            goto end;
        for (Py_ssize_t row = 0; row < all.count; row++)
            memcpy(numbers_of(results[number]) + row, (int64_t *)&all.rows[row] + number, 8);
    }
end:
    PyMem_RawFree(all.rows);
    PyMem_RawFree(all.slots);
    let_go(in, 11);
    if (!PyErr_Occurred() && (there != 0 || known != 0))
        Py_RETURN_NONE;
    return together(results, 5);
}

/* ---- liveness ---- */

/* live(step, first, count, sign, tile, bytes, [steps, tiles, tiles of an IPU]): the bytes alive by
   step and IPU, and the most at any step by tile. At a step, in rising order, so many pieces from
   the first on come alive (sign 1) or end (-1). */
static PyObject *live(PyObject *module, PyObject *const *given, Py_ssize_t arguments)
{
    Column in[7];
    PyObject *results[2] = {NULL, NULL};
    int64_t *level = NULL;
    if (take(given, arguments, in, 7) < 0)
        return NULL;
    if (!alike(in, 0, 3) || !alike(in, 4, 5))
        goto end;
    int64_t sizes[3] = {0, 0, 0};
    for (int number = 0; number < 3 && in[6].count == 3; number++)
        sizes[number] = at(&in[6], number);
    Py_ssize_t steps = sizes[0], tiles = sizes[1], ipus = sizes[2] > 0 ? tiles / sizes[2] : 0;
    if (steps < 0 || ipus < 1 || tiles % sizes[2]) {
        PyErr_SetString(PyExc_ValueError, "the number of steps and that of tiles are needed");
        goto end;
    }
    for (Py_ssize_t i = 0; i < in[0].count; i++)
        if (at(&in[0], i) < (i ? at(&in[0], i - 1) : 0) || at(&in[1], i) < 0 || at(&in[2], i) < 0
            || at(&in[1], i) + at(&in[2], i) > in[4].count) {
            PyErr_Format(PyExc_IndexError, "change %zd is of no step or no piece", i);
            goto end;
        }
    for (Py_ssize_t i = 0; i < in[4].count; i++)
        if (at(&in[4], i) < 0 || at(&in[4], i) >= tiles) {
            PyErr_Format(PyExc_IndexError, "piece %zd is on no tile", i);
            goto end;
        }
    results[0] = fresh(8 * steps * ipus);
    results[1] = fresh(8 * tiles);
    level = PyMem_RawCalloc(tiles + ipus, 8);
    if (results[0] == NULL || results[1] == NULL || level == NULL) {
        PyErr_NoMemory();
        goto end;
    }
    int64_t *most = memset(numbers_of(results[1]), 0, 8 * tiles), *by_ipu = level + tiles;
    Py_ssize_t change = 0;
    for (Py_ssize_t step = 0; step < steps; step++) {
        Py_ssize_t begun = change;
        for (; change < in[0].count && at(&in[0], change) == step; change++)
            for (int64_t k = 0, piece = at(&in[1], change); k < at(&in[2], change); k++, piece++) {
                int64_t tile = at(&in[4], piece), size = at(&in[3], change) * at(&in[5], piece);
                level[tile] += size;
                by_ipu[tile / sizes[2]] += size;
            }
        for (Py_ssize_t i = begun; i < change; i++)
            for (int64_t k = 0, piece = at(&in[1], i); k < at(&in[2], i); k++, piece++) {
                int64_t tile = at(&in[4], piece);
                most[tile] = level[tile] > most[tile] ? level[tile] : most[tile];
            }
        memcpy(numbers_of(results[0]) + step * ipus, by_ipu, 8 * ipus);
    }
end:
    PyMem_RawFree(level);
    let_go(in, 7);
    if (PyErr_Occurred()) {
        Py_CLEAR(results[0]);
        Py_CLEAR(results[1]);
        return NULL;
    }
    return together(results, 2);
}

#define METHOD(name) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, NULL}

static PyMethodDef methods[] = {
    METHOD(spread), METHOD(from_elements), METHOD(join), METHOD(cut), METHOD(crossings),
    METHOD(overlap), METHOD(rearranged), METHOD(gathered), METHOD(summed), METHOD(by_tiles),
    METHOD(parts), METHOD(kinds), METHOD(met), METHOD(touch), METHOD(brought), METHOD(united),
    METHOD(exchange), METHOD(highest), METHOD(live), METHOD(flows),
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, .m_name = "_kernels", .m_size = -1, .m_methods = methods,
};

PyMODINIT_FUNC PyInit__kernels(void)
{
    PyObject *made = PyModule_Create(&module);
    if (made != NULL && PyModule_AddIntConstant(made, "INTERFACE", INTERFACE) < 0)
        Py_CLEAR(made);
    return made;
}
