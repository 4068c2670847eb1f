// SPDX-License-Identifier: MIT
// A library with the names by which an interpreter of Python 3.13 or later is recognised. Every one of them has mimalloc
// built in; one with FREE_THREADED uses it, and has reference counts that threads share.
void* mi_malloc(unsigned long bytes);
void* mi_heap_malloc(void* heap, unsigned long bytes);
void* PyObject_Malloc(unsigned long bytes);
void* _PyObject_MiMalloc(void* context, unsigned long bytes);
void _Py_MergeZeroLocalRefcount(void* object);

void* mi_malloc(unsigned long bytes) { return (void*)bytes; }
void* mi_heap_malloc(void* heap, unsigned long bytes) { return heap ? heap : (void*)bytes; }
void* PyObject_Malloc(unsigned long bytes) { return (void*)bytes; }
void* _PyObject_MiMalloc(void* context, unsigned long bytes) { return context ? context : (void*)bytes; }
#ifdef FREE_THREADED
void _Py_MergeZeroLocalRefcount(void* object) { (void)object; }
#endif
