/* Rows of a report as objects, and sequences of them: `Row` and `Rows` of `pva/model/rows.py`.

   A walk over the steps of a report makes three objects a step. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#define INTERFACE 1 /* as in rows.py */

typedef struct {
    PyObject_HEAD
    PyObject *data;
    Py_ssize_t row;
} Row;

typedef struct {
    PyObject_HEAD
    PyObject *rows; /* their numbers */
    PyObject *make;
} Rows;

/* Look whether there are two arguments, and none with a name. */
static int are_two(PyObject *self, PyObject *given, PyObject *named)
{
    if (PyTuple_GET_SIZE(given) == 2 && (named == NULL || PyDict_GET_SIZE(named) == 0)) return 1;
    PyErr_Format(PyExc_TypeError, "%s takes two arguments, by their places", Py_TYPE(self)->tp_name);
    return 0;
}

/* ---- a row ---- */

static int row_init(PyObject *self, PyObject *given, PyObject *named)
{
    if (!are_two(self, given, named)) return -1;
    Py_ssize_t row = PyNumber_AsSsize_t(PyTuple_GET_ITEM(given, 1), PyExc_OverflowError);
    if (row == -1 && PyErr_Occurred()) return -1;
    Py_XSETREF(((Row *)self)->data, Py_NewRef(PyTuple_GET_ITEM(given, 0)));
    ((Row *)self)->row = row;
    return 0;
}

static int row_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((Row *)self)->data);
    return 0;
}

static int row_clear(PyObject *self)
{
    Py_CLEAR(((Row *)self)->data);
    return 0;
}

static void row_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    row_clear(self);
    Py_TYPE(self)->tp_free(self);
}

static PyMemberDef row_members[] = {
    {"_data", T_OBJECT_EX, offsetof(Row, data), 0, NULL},
    {"_row", T_PYSSIZET, offsetof(Row, row), 0, NULL},
    {NULL, 0, 0, 0, NULL}};

static PyTypeObject row_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "pva.model._rows.Row",
    .tp_doc = "A row of a dataset.",
    .tp_basicsize = sizeof(Row),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = PyType_GenericNew,
    .tp_init = row_init,
    .tp_dealloc = row_dealloc,
    .tp_traverse = row_traverse,
    .tp_clear = row_clear,
    .tp_members = row_members,
};

/* ---- a sequence of them ---- */

static int rows_init(PyObject *self, PyObject *given, PyObject *named)
{
    if (!are_two(self, given, named)) return -1;
    Py_XSETREF(((Rows *)self)->rows, Py_NewRef(PyTuple_GET_ITEM(given, 0)));
    Py_XSETREF(((Rows *)self)->make, Py_NewRef(PyTuple_GET_ITEM(given, 1)));
    return 0;
}

static int rows_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((Rows *)self)->rows);
    Py_VISIT(((Rows *)self)->make);
    return 0;
}

static int rows_clear(PyObject *self)
{
    Py_CLEAR(((Rows *)self)->rows);
    Py_CLEAR(((Rows *)self)->make);
    return 0;
}

static void rows_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    rows_clear(self);
    Py_TYPE(self)->tp_free(self);
}

/* One that was made by `__new__` alone has neither. */
static int has_both(PyObject *self)
{
    if (((Rows *)self)->rows != NULL && ((Rows *)self)->make != NULL) return 1;
    PyErr_Format(PyExc_AttributeError, "%s has no rows yet", Py_TYPE(self)->tp_name);
    return 0;
}

static Py_ssize_t rows_length(PyObject *self)
{
    return has_both(self) ? PyObject_Size(((Rows *)self)->rows) : -1;
}

/* Raise the error that the class has for a place outside. */
static void outside(PyObject *self, PyObject *place)
{
    PyErr_Clear();
    PyObject *error = PyObject_CallMethod(self, "_outside", "(O)", place);
    if (error != NULL) PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
}

static PyObject *rows_item(PyObject *self, PyObject *place)
{
    if (!has_both(self)) return NULL;
    PyObject *make = Py_NewRef(((Rows *)self)->make), *item = NULL;
    PyObject *found = PyObject_GetItem(((Rows *)self)->rows, place);
    if (found != NULL && PySlice_Check(place))
        item = PyObject_CallFunctionObjArgs((PyObject *)Py_TYPE(self), found, make, NULL);
    else if (found != NULL)
        item = PyObject_CallOneArg(make, found);
    else if (PyErr_ExceptionMatches(PyExc_IndexError))
        outside(self, place);
    Py_XDECREF(found);
    Py_DECREF(make);
    return item;
}

static PyObject *rows_iterator(PyObject *self)
{
    Rows *all = (Rows *)self;
    if (!has_both(self)) return NULL;
    return PyObject_CallFunctionObjArgs((PyObject *)&PyMap_Type, all->make, all->rows, NULL);
}

static PyMemberDef rows_members[] = {
    {"_rows", T_OBJECT_EX, offsetof(Rows, rows), 0, NULL},
    {"_make", T_OBJECT_EX, offsetof(Rows, make), 0, NULL},
    {NULL, 0, 0, 0, NULL}};

static PyMethodDef rows_methods[] = {
    {"__class_getitem__", Py_GenericAlias, METH_O | METH_CLASS, NULL}, {NULL, NULL, 0, NULL}};

static PyMappingMethods rows_mapping = {.mp_length = rows_length, .mp_subscript = rows_item};

static PyTypeObject rows_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "pva.model._rows.Rows",
    .tp_doc = "Makes its items when they are asked for.",
    .tp_basicsize = sizeof(Rows),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = PyType_GenericNew,
    .tp_init = rows_init,
    .tp_dealloc = rows_dealloc,
    .tp_traverse = rows_traverse,
    .tp_clear = rows_clear,
    .tp_iter = rows_iterator,
    .tp_as_mapping = &rows_mapping,
    .tp_members = rows_members,
    .tp_methods = rows_methods,
};

/* ---- the module ---- */

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT, .m_name = "pva.model._rows", .m_size = -1};

/* Add a type, with the names of its members where `copy` looks for those of a class in Python. */
static int add_type(PyObject *module, PyTypeObject *type)
{
    if (PyType_Ready(type) < 0) return -1;
    PyObject *names = Py_BuildValue("(ss)", type->tp_members[0].name, type->tp_members[1].name);
    int state = names == NULL ? -1 : PyDict_SetItemString(type->tp_dict, "__slots__", names);
    Py_XDECREF(names);
    PyType_Modified(type);
    return state < 0 ? -1 : PyModule_AddType(module, type);
}

PyMODINIT_FUNC PyInit__rows(void)
{
    PyObject *module = PyModule_Create(&module_definition);
    if (module != NULL && (PyModule_AddIntConstant(module, "INTERFACE", INTERFACE) < 0
                           || add_type(module, &row_type) < 0
                           || add_type(module, &rows_type) < 0)) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
