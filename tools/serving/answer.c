/* Answers requests from an exported model with TensorFlow's C library and no Python.
 *
 *   answer MODEL_DIR SIGNATURE REQUEST_FILE REPLY_FILE [OP_LIBRARY...]
 *
 * Loads the op libraries (signatures that take strings need TensorFlow Text's, for example
 * tensorflow_text/python/ops/_fast_wordpiece_tokenizer.so), then the SavedModel with the tag
 * "serve", and answers every tensor set of REQUEST_FILE, in order, into REPLY_FILE.
 *
 * To compile, with TF the folder of the installed package tensorflow:
 *
 *   gcc -std=c11 -O2 -Wall -Wextra -Werror -I$TF/include tools/serving/answer.c -o answer \
 *       -L$TF -l:libtensorflow_cc.so.2 -l:libtensorflow_framework.so.2 -Wl,-rpath,$TF
 *
 * Both files hold tensor sets, one after another, all numbers little-endian:
 *
 *   "KBT1", uint32 count, then `count` tensors, each:
 *     uint32 length of the name, the name, int32 dtype (a TF_DataType), int32 rank,
 *     int64 dims[rank], and the elements in row-major order: of strings a uint64 length and the
 *     bytes each, of other dtypes the raw values.
 *
 * A request that fails gets, in place of its set, "KBT1", the count 0xFFFFFFFF, int32 code (a
 * TF_Code), uint32 length of the message, the message; those after it are answered all the same.
 * A file or a model that cannot be read ends the program with status 1 and a message, and no
 * REPLY_FILE is left. Progress and the memory held go to stderr after 1, 10, 100, ... requests.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensorflow/c/c_api.h"
#include "tensorflow/c/tf_tstring.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "tensors are copied as they lie in memory, which must be little-endian"
#endif

enum { MAX_RANK = 254 /* TensorShape's own limit */, MESSAGE_SIZE = 512 };
static const char MAGIC[4] = "KBT1";
static const uint32_t FAILED = 0xFFFFFFFFu;

static void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* The reply being written, to be removed if the program dies. */
static char *unfinished = NULL;

static void die(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("answer: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  if (unfinished != NULL) remove(unfinished);
  exit(1);
}

/* What TensorFlow's message about an unknown op leaves out. Ops inside of functions, as all ops of
 * a signature are, get looked up when they run; others when the model is loaded. */
static const char *advice(const char *message) {
  return strstr(message, "Op type not registered") == NULL
             ? ""
             : "; name the library that holds this op after REPLY_FILE";
}

static void *allocate(size_t count, size_t size) {
  void *memory = calloc(count > 0 ? count : 1, size);
  if (memory == NULL) die("no memory for %zu times %zu bytes", count, size);
  return memory;
}

/* ---- Bytes, never read past their end ---------------------------------------------------- */

typedef struct {
  const uint8_t *at, *end;
} Bytes;

static size_t left(const Bytes *bytes) { return (size_t)(bytes->end - bytes->at); }

static bool take(Bytes *bytes, size_t size, Bytes *part) {
  if (size > left(bytes)) return false;
  *part = (Bytes){bytes->at, bytes->at + size};
  bytes->at += size;
  return true;
}

static bool take_number(Bytes *bytes, void *number, size_t size) {
  Bytes part;
  if (!take(bytes, size, &part)) return false;
  memcpy(number, part.at, size);
  return true;
}

static bool equal(Bytes a, Bytes b) {
  return left(&a) == left(&b) && memcmp(a.at, b.at, left(&a)) == 0;
}

static Bytes of_string(const char *text) {
  return (Bytes){(const uint8_t *)text, (const uint8_t *)text + strlen(text)};
}

/* For "%.*s". Names are cut at 200 bytes: a request may hold one of any length. */
static int shown(Bytes bytes) { return left(&bytes) < 200 ? (int)left(&bytes) : 200; }
#define SHOW(bytes) shown(bytes), (const char *)(bytes).at

static Bytes read_file(const char *path) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) die("%s: %s", path, strerror(errno));
  size_t size = 0, room = 1 << 16;
  uint8_t *content = allocate(room, 1);
  for (;;) {
    size += fread(content + size, 1, room - size, file);
    if (size < room) break;
    room *= 2;
    uint8_t *larger = realloc(content, room);
    if (larger == NULL) die("%s: no memory for %zu bytes", path, room);
    content = larger;
  }
  if (ferror(file)) die("%s cannot be read: %s", path, strerror(errno));
  fclose(file);
  return (Bytes){content, content + size};
}

/* ---- Protocol buffers, by their wire format (protobuf.dev/programming-guides/encoding) ---- */

typedef struct {
  uint64_t number; /* of the field, 1 and up */
  int wire;        /* 0 varint, 1 eight bytes, 2 bytes with a length, 5 four bytes */
  uint64_t value;  /* of wire 0 */
  Bytes bytes;     /* of wire 2 */
} Field;

static bool take_varint(Bytes *bytes, uint64_t *value) {
  *value = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    if (left(bytes) == 0) return false;
    uint8_t byte = *bytes->at++;
    if (shift < 64) *value |= (uint64_t)(byte & 0x7F) << shift;
    if ((byte & 0x80) == 0) return true;
  }
  return false;
}

/* Reads the next field; false at the end of the message. */
static bool take_field(Bytes *message, Field *field) {
  static const char broken[] = "the model's MetaGraphDef is no valid protocol buffer";
  uint64_t tag, size;
  Bytes skipped;
  if (left(message) == 0) return false;
  if (!take_varint(message, &tag)) die(broken);
  *field = (Field){.number = tag >> 3, .wire = (int)(tag & 7)};
  bool whole = field->number > 0;
  switch (field->wire) {
    case 0: whole = whole && take_varint(message, &field->value); break;
    case 1: whole = whole && take(message, 8, &skipped); break;
    case 2:
      whole = whole && take_varint(message, &size) && size <= left(message) &&
              take(message, (size_t)size, &field->bytes);
      break;
    case 5: whole = whole && take(message, 4, &skipped); break;
    default: whole = false;
  }
  if (!whole) die(broken);
  return true;
}

/* An entry of a map with string keys. */
static void take_entry(Bytes entry, Bytes *key, Bytes *value) {
  Field field;
  *key = *value = of_string("");
  while (take_field(&entry, &field)) {
    if (field.number == 1 && field.wire == 2) *key = field.bytes;
    if (field.number == 2 && field.wire == 2) *value = field.bytes;
  }
}

/* ---- The signature ------------------------------------------------------------------------ */

typedef struct {
  Bytes name;
  TF_Output tensor;
  TF_DataType dtype;
  int rank; /* -1: any */
  int64_t dims[MAX_RANK]; /* -1: any */
} Endpoint;

typedef struct {
  Endpoint *inputs, *outputs;
  int num_inputs, num_outputs;
} Signature;

/* TensorShapeProto: dim = 2 {size = 1}, unknown_rank = 3. */
static void read_shape(Bytes message, Endpoint *endpoint) {
  Field field, part;
  endpoint->rank = 0;
  bool unknown = false;
  while (take_field(&message, &field)) {
    if (field.number == 3 && field.wire == 0) unknown = field.value != 0;
    if (field.number != 2 || field.wire != 2) continue;
    if (endpoint->rank == MAX_RANK) die("%.*s has too many dimensions", SHOW(endpoint->name));
    int64_t size = 0;
    while (take_field(&field.bytes, &part))
      if (part.number == 1 && part.wire == 0) size = (int64_t)part.value;
    endpoint->dims[endpoint->rank++] = size;
  }
  if (unknown) endpoint->rank = -1;
}

/* TensorInfo: name = 1 ("operation:index"), dtype = 2, tensor_shape = 3. */
static void read_tensor_info(Bytes message, TF_Graph *graph, Endpoint *endpoint) {
  Field field;
  Bytes name = of_string("");
  endpoint->rank = -1;
  while (take_field(&message, &field)) {
    if (field.number == 1 && field.wire == 2) name = field.bytes;
    if (field.number == 2 && field.wire == 0) endpoint->dtype = (TF_DataType)field.value;
    if (field.number == 3 && field.wire == 2) read_shape(field.bytes, endpoint);
  }
  char *operation = allocate(left(&name) + 1, 1);
  memcpy(operation, name.at, left(&name));
  char *colon = strrchr(operation, ':');
  char *rest = NULL;
  long index = colon == NULL ? -1 : strtol(colon + 1, &rest, 10);
  if (colon == NULL || rest == colon + 1 || *rest != '\0' || index < 0)
    die("the signature's \"%.*s\" is no plain tensor but \"%.*s\"", SHOW(endpoint->name),
        SHOW(name));
  *colon = '\0';
  endpoint->tensor.oper = TF_GraphOperationByName(graph, operation);
  if (endpoint->tensor.oper == NULL || index >= TF_OperationNumOutputs(endpoint->tensor.oper))
    die("the signature's \"%.*s\" is \"%.*s\", which the graph does not hold",
        SHOW(endpoint->name), SHOW(name));
  endpoint->tensor.index = (int)index;
  free(operation);
}

static int by_name(const void *a, const void *b) {
  Bytes x = ((const Endpoint *)a)->name, y = ((const Endpoint *)b)->name;
  size_t common = left(&x) < left(&y) ? left(&x) : left(&y);
  int order = memcmp(x.at, y.at, common);
  return order != 0 ? order : (left(&x) > left(&y)) - (left(&x) < left(&y));
}

/* The entries of one map of a SignatureDef, by name: a map has no order of its own. */
static Endpoint *read_endpoints(Bytes signature, uint64_t number, TF_Graph *graph, int *count) {
  Field field;
  *count = 0;
  for (Bytes rest = signature; take_field(&rest, &field);)
    *count += field.number == number && field.wire == 2;
  Endpoint *endpoints = allocate((size_t)*count, sizeof(Endpoint)), *next = endpoints;
  for (Bytes rest = signature; take_field(&rest, &field);) {
    if (field.number != number || field.wire != 2) continue;
    Bytes info;
    take_entry(field.bytes, &next->name, &info);
    read_tensor_info(info, graph, next++);
  }
  qsort(endpoints, (size_t)*count, sizeof(Endpoint), by_name);
  return endpoints;
}

/* MetaGraphDef: signature_def = 5, a map to SignatureDef: inputs = 1, outputs = 2. */
static Signature read_signature(Bytes meta_graph, const char *name, TF_Graph *graph) {
  Field field;
  Bytes key, value;
  for (Bytes rest = meta_graph; take_field(&rest, &field);) {
    if (field.number != 5 || field.wire != 2) continue;
    take_entry(field.bytes, &key, &value);
    if (!equal(key, of_string(name))) continue;
    Signature signature;
    signature.inputs = read_endpoints(value, 1, graph, &signature.num_inputs);
    signature.outputs = read_endpoints(value, 2, graph, &signature.num_outputs);
    if (signature.num_outputs == 0) die("the signature \"%s\" has no outputs", name);
    return signature;
  }
  fprintf(stderr, "answer: the model has no signature \"%s\"; it has", name);
  for (Bytes rest = meta_graph; take_field(&rest, &field);) {
    if (field.number != 5 || field.wire != 2) continue;
    take_entry(field.bytes, &key, &value);
    if (left(&key) < 2 || memcmp(key.at, "__", 2) != 0) fprintf(stderr, " \"%.*s\"", SHOW(key));
  }
  fputc('\n', stderr);
  exit(1);
}

/* ---- Requests ----------------------------------------------------------------------------- */

typedef struct {
  Bytes name, content;
  TF_DataType dtype;
  int32_t rank;
  int64_t dims[MAX_RANK];
  uint64_t elements;
} Given;

/* Bytes of an element; 0 of a dtype that these files do not hold. */
static size_t element_size(TF_DataType dtype) {
  switch (dtype) {
    case TF_BOOL: case TF_INT8: case TF_UINT8: return 1;
    case TF_INT16: case TF_UINT16: case TF_HALF: case TF_BFLOAT16: return 2;
    case TF_INT32: case TF_UINT32: case TF_FLOAT: return 4;
    case TF_INT64: case TF_UINT64: case TF_DOUBLE: return 8;
    default: return 0;
  }
}

static const char *dtype_name(TF_DataType dtype) {
  switch (dtype) {
    case TF_BOOL: return "bool";
    case TF_INT8: return "int8";
    case TF_UINT8: return "uint8";
    case TF_INT16: return "int16";
    case TF_UINT16: return "uint16";
    case TF_HALF: return "float16";
    case TF_BFLOAT16: return "bfloat16";
    case TF_INT32: return "int32";
    case TF_UINT32: return "uint32";
    case TF_FLOAT: return "float32";
    case TF_INT64: return "int64";
    case TF_UINT64: return "uint64";
    case TF_DOUBLE: return "float64";
    case TF_STRING: return "string";
    default: return "another dtype";
  }
}

/* Reads one tensor of a set; says what is wrong with it, or NULL. */
static const char *take_tensor(Bytes *file, Given *given) {
  uint32_t size;
  int32_t dtype;
  if (!take_number(file, &size, 4) || !take(file, size, &given->name)) return "its name is cut off";
  if (!take_number(file, &dtype, 4) || !take_number(file, &given->rank, 4))
    return "its dtype or rank is cut off";
  given->dtype = (TF_DataType)dtype;
  size_t bytes = element_size(given->dtype);
  if (bytes == 0 && given->dtype != TF_STRING) return "its dtype is unknown";
  if (given->rank < 0 || given->rank > MAX_RANK) return "its rank is not 0 to 254";
  if (!take_number(file, given->dims, (size_t)given->rank * 8)) return "its shape is cut off";
  /* The product without zeros is bounded too: TensorFlow ends the process where it overflows. */
  uint64_t product = 1;
  bool empty = false;
  for (int i = 0; i < given->rank; i++) {
    if (given->dims[i] < 0) return "a dimension is negative";
    if (given->dims[i] == 0) {
      empty = true;
    } else if (product > (UINT64_C(1) << 40) / (uint64_t)given->dims[i]) {
      return "its shape is too large";
    } else {
      product *= (uint64_t)given->dims[i];
    }
  }
  given->elements = empty ? 0 : product;
  if (bytes > 0)
    return take(file, given->elements * bytes, &given->content) ? NULL : "its values are cut off";
  given->content.at = file->at;
  for (uint64_t i = 0; i < given->elements; i++) {
    uint64_t length;
    Bytes text;
    if (!take_number(file, &length, 8) || length > left(file) || !take(file, length, &text))
      return "its strings are cut off";
  }
  given->content.end = file->at;
  return NULL;
}

static TF_Tensor *make_tensor(const Given *given) {
  size_t size = given->dtype == TF_STRING ? sizeof(TF_TString) : element_size(given->dtype);
  size *= given->elements;
  TF_Tensor *tensor = TF_AllocateTensor(given->dtype, given->dims, given->rank, size);
  if (tensor == NULL) die("no memory for a tensor of %zu bytes", size);
  if (given->dtype != TF_STRING) {
    if (size > 0) memcpy(TF_TensorData(tensor), given->content.at, size);
    return tensor;
  }
  TF_TString *strings = TF_TensorData(tensor);
  Bytes rest = given->content;
  for (uint64_t i = 0; i < given->elements; i++) {
    uint64_t length = 0;
    Bytes text = of_string("");
    if (!take_number(&rest, &length, 8) || !take(&rest, length, &text)) die("strings changed");
    TF_StringInit(&strings[i]);
    TF_StringCopy(&strings[i], (const char *)text.at, length);
  }
  return tensor;
}

/* Deletes a tensor of `make_tensor`, whose strings nobody else frees. */
static void delete_tensor(TF_Tensor *tensor) {
  if (tensor == NULL) return;
  if (TF_TensorType(tensor) == TF_STRING) {
    TF_TString *strings = TF_TensorData(tensor);
    int64_t count = TF_TensorElementCount(tensor);
    for (int64_t i = 0; i < count; i++) TF_StringDealloc(&strings[i]);
  }
  TF_DeleteTensor(tensor);
}

static void write_shape(char *text, size_t size, const int64_t *dims, int rank) {
  size_t used = (size_t)snprintf(text, size, "[");
  for (int i = 0; i < rank && used + 24 < size; i++) {
    used += (size_t)snprintf(text + used, size - used, i > 0 ? ", " : "");
    used += dims[i] < 0 ? (size_t)snprintf(text + used, size - used, "any")
                        : (size_t)snprintf(text + used, size - used, "%" PRId64, dims[i]);
  }
  snprintf(text + used, size - used, "]");
}

/* Whether a tensor is what the signature asks for; fills in a message if not. The session itself
 * checks no shape of what is fed to it. */
static bool fits(const Given *given, const Endpoint *input, char *message) {
  if (given->dtype != input->dtype) {
    snprintf(message, MESSAGE_SIZE, "the input \"%.*s\" is %s, expected %s", SHOW(input->name),
             dtype_name(given->dtype), dtype_name(input->dtype));
    return false;
  }
  if (input->rank < 0) return true;
  bool same = given->rank == input->rank;
  for (int i = 0; same && i < input->rank; i++)
    same = input->dims[i] < 0 || given->dims[i] == input->dims[i];
  if (!same) {
    char came[100], expected[100];
    write_shape(came, sizeof came, given->dims, given->rank);
    write_shape(expected, sizeof expected, input->dims, input->rank);
    snprintf(message, MESSAGE_SIZE, "the input \"%.*s\" has the shape %s, expected %s",
             SHOW(input->name), came, expected);
  }
  return same;
}

/* The tensors of a request in the signature's order; fills in a message if they do not fit. */
static bool match(const Given *given, uint32_t count, const Signature *signature,
                  TF_Tensor **values, char *message) {
  for (int i = 0; i < signature->num_inputs; i++) {
    const Endpoint *input = &signature->inputs[i];
    for (uint32_t k = 0; k < count; k++) {
      if (!equal(given[k].name, input->name)) continue;
      if (values[i] != NULL) {
        snprintf(message, MESSAGE_SIZE, "the input \"%.*s\" comes twice", SHOW(input->name));
        return false;
      }
      if (!fits(&given[k], input, message)) return false;
      values[i] = make_tensor(&given[k]);
    }
    if (values[i] == NULL) {
      snprintf(message, MESSAGE_SIZE, "the input \"%.*s\" is missing", SHOW(input->name));
      return false;
    }
  }
  for (uint32_t k = 0; k < count; k++) {
    bool known = false;
    for (int i = 0; i < signature->num_inputs; i++)
      known = known || equal(given[k].name, signature->inputs[i].name);
    if (known) continue;
    snprintf(message, MESSAGE_SIZE, "the signature has no input \"%.*s\"", SHOW(given[k].name));
    return false;
  }
  return true;
}

/* ---- Replies ------------------------------------------------------------------------------ */

static void put(FILE *file, const void *content, size_t size) {
  if (size > 0 && fwrite(content, 1, size, file) != size)
    die("%s cannot be written: %s", unfinished, strerror(errno));
}

static void put_u32(FILE *file, uint32_t value) { put(file, &value, 4); }

static void put_error(FILE *file, TF_Code code, const char *message) {
  int32_t number = (int32_t)code;
  const char *what_to_do = advice(message);
  put(file, MAGIC, sizeof MAGIC);
  put_u32(file, FAILED);
  put(file, &number, 4);
  put_u32(file, (uint32_t)(strlen(message) + strlen(what_to_do)));
  put(file, message, strlen(message));
  put(file, what_to_do, strlen(what_to_do));
}

static void put_tensor(FILE *file, Bytes name, const TF_Tensor *tensor) {
  int32_t dtype = (int32_t)TF_TensorType(tensor), rank = TF_NumDims(tensor);
  put_u32(file, (uint32_t)left(&name));
  put(file, name.at, left(&name));
  put(file, &dtype, 4);
  put(file, &rank, 4);
  for (int i = 0; i < rank; i++) {
    int64_t size = TF_Dim(tensor, i);
    put(file, &size, 8);
  }
  if (dtype != TF_STRING) {
    put(file, TF_TensorData(tensor), TF_TensorByteSize(tensor));
    return;
  }
  const TF_TString *strings = TF_TensorData(tensor);
  for (int64_t i = 0; i < TF_TensorElementCount(tensor); i++) {
    uint64_t length = TF_StringGetSize(&strings[i]);
    put(file, &length, 8);
    put(file, TF_StringGetDataPointer(&strings[i]), length);
  }
}

/* Runs one request and writes its reply; whether it succeeded. */
static bool answer(TF_Session *session, const Signature *signature, const Given *given,
                   uint32_t count, FILE *file) {
  size_t num_inputs = (size_t)signature->num_inputs, num_outputs = (size_t)signature->num_outputs;
  TF_Output *feeds = allocate(num_inputs, sizeof *feeds);
  TF_Output *fetches = allocate(num_outputs, sizeof *fetches);
  TF_Tensor **values = allocate(num_inputs, sizeof *values);
  TF_Tensor **results = allocate(num_outputs, sizeof *results);
  TF_Status *status = TF_NewStatus();
  char message[MESSAGE_SIZE];
  for (size_t i = 0; i < num_inputs; i++) feeds[i] = signature->inputs[i].tensor;
  for (size_t i = 0; i < num_outputs; i++) fetches[i] = signature->outputs[i].tensor;
  bool ok = match(given, count, signature, values, message);
  if (!ok) {
    put_error(file, TF_INVALID_ARGUMENT, message);
  } else {
    TF_SessionRun(session, NULL, feeds, values, (int)num_inputs, fetches, results,
                  (int)num_outputs, NULL, 0, NULL, status);
    ok = TF_GetCode(status) == TF_OK;
    for (size_t i = 0; ok && i < num_outputs; i++) {
      TF_DataType dtype = TF_TensorType(results[i]);
      if (dtype == TF_STRING || element_size(dtype) > 0) continue;
      TF_SetStatus(status, TF_UNIMPLEMENTED, "an output has a dtype that replies do not hold");
      ok = false;
    }
    if (!ok) {
      put_error(file, TF_GetCode(status), TF_Message(status));
    } else {
      put(file, MAGIC, sizeof MAGIC);
      put_u32(file, (uint32_t)num_outputs);
      for (size_t i = 0; i < num_outputs; i++)
        put_tensor(file, signature->outputs[i].name, results[i]);
    }
  }
  /* Results first: one may be an input passed through, and share its strings. */
  for (size_t i = 0; i < num_outputs; i++)
    if (results[i] != NULL) TF_DeleteTensor(results[i]);
  for (size_t i = 0; i < num_inputs; i++) delete_tensor(values[i]);
  TF_DeleteStatus(status);
  free(feeds), free(fetches), free(values), free(results);
  return ok;
}

/* ---- The program -------------------------------------------------------------------------- */

static long resident_kb(void) {
  char line[256];
  long size = -1;
  FILE *file = fopen("/proc/self/status", "r");
  if (file == NULL) return -1; /* not Linux */
  while (size < 0 && fgets(line, sizeof line, file) != NULL)
    if (sscanf(line, "VmRSS: %ld kB", &size) != 1) size = -1;
  fclose(file);
  return size;
}

static void report(uint64_t answered, uint64_t failed) {
  fprintf(stderr, "answer: %" PRIu64 " requests, %" PRIu64 " failed, VmRSS %ld kB\n", answered,
          failed, resident_kb());
}

/* Reads the tensors of the request at `file`, to be freed by the caller. A whole file is checked
 * before the model is loaded. */
static Given *take_request(Bytes *file, const char *path, Bytes whole, uint64_t request,
                           uint32_t *count) {
  size_t start = (size_t)(file->at - whole.at);
  Bytes magic;
  if (!take(file, 4, &magic) || memcmp(magic.at, MAGIC, 4) != 0)
    die("%s: request %" PRIu64 " at byte %zu does not start with KBT1", path, request, start);
  /* The smallest tensor has 12 bytes of header. */
  if (!take_number(file, count, 4) || *count > left(file) / 12)
    die("%s: request %" PRIu64 " at byte %zu is cut off", path, request, start);
  Given *given = allocate(*count, sizeof *given);
  for (uint32_t i = 0; i < *count; i++) {
    const char *wrong = take_tensor(file, &given[i]);
    if (wrong != NULL)
      die("%s: request %" PRIu64 " at byte %zu, tensor %" PRIu32 ": %s", path, request, start, i,
          wrong);
  }
  return given;
}

static void check_file(const char *path, Bytes whole) {
  uint32_t count;
  uint64_t request = 0;
  for (Bytes file = whole; left(&file) > 0;)
    free(take_request(&file, path, whole, request++, &count));
}

static void answer_file(TF_Session *session, const Signature *signature, const char *path,
                        Bytes whole, FILE *reply) {
  uint64_t answered = 0, failed = 0, next_report = 1;
  for (Bytes file = whole; left(&file) > 0;) {
    uint32_t count;
    Given *given = take_request(&file, path, whole, answered, &count);
    failed += !answer(session, signature, given, count, reply);
    free(given);
    if (++answered == next_report) {
      report(answered, failed);
      next_report *= 10;
    }
  }
  if (answered * 10 != next_report) report(answered, failed);
}

int main(int argc, char **argv) {
  if (argc < 5) {
    fprintf(stderr, "usage: %s MODEL_DIR SIGNATURE REQUEST_FILE REPLY_FILE [OP_LIBRARY...]\n",
            argv[0]);
    return 2;
  }
  Bytes requests = read_file(argv[3]);
  check_file(argv[3], requests);
  TF_Status *status = TF_NewStatus();
  for (int i = 5; i < argc; i++) {
    TF_Library *library = TF_LoadLibrary(argv[i], status);
    if (TF_GetCode(status) != TF_OK) die("op library %s: %s", argv[i], TF_Message(status));
    TF_DeleteLibraryHandle(library); /* frees the list of its ops; the library stays loaded */
  }
  TF_Graph *graph = TF_NewGraph();
  TF_SessionOptions *options = TF_NewSessionOptions();
  TF_Buffer *meta_graph = TF_NewBuffer();
  const char *tags[] = {"serve"};
  TF_Session *session =
      TF_LoadSessionFromSavedModel(options, NULL, argv[1], tags, 1, graph, meta_graph, status);
  if (TF_GetCode(status) != TF_OK)
    die("the model %s does not load: %s%s", argv[1], TF_Message(status),
        advice(TF_Message(status)));
  const uint8_t *start = meta_graph->data;
  Signature signature = read_signature((Bytes){start, start + meta_graph->length}, argv[2], graph);

  unfinished = allocate(strlen(argv[4]) + sizeof ".part", 1);
  strcat(strcpy(unfinished, argv[4]), ".part");
  FILE *reply = fopen(unfinished, "wb");
  if (reply == NULL) die("%s cannot be written: %s", unfinished, strerror(errno));
  answer_file(session, &signature, argv[3], requests, reply);
  if (fclose(reply) != 0 || rename(unfinished, argv[4]) != 0)
    die("%s cannot be written: %s", argv[4], strerror(errno));

  free(unfinished);
  free((void *)requests.at);
  free(signature.inputs);
  free(signature.outputs);
  TF_CloseSession(session, status);
  TF_DeleteSession(session, status);
  TF_DeleteSessionOptions(options);
  TF_DeleteGraph(graph);
  TF_DeleteBuffer(meta_graph);
  TF_DeleteStatus(status);
  return 0;
}
