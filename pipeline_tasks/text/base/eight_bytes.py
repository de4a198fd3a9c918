"""Read eight bytes of a text at once, and mark, count or hash all eight together."""

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from pipeline_tasks.text.base.compiled import inlined, instruction
from pipeline_tasks.text.base.hashing import absorb

HIGH_BITS = np.uint64(0x8080808080808080)
HASH_START = np.uint64(0xCBF29CE484222325)
"""What a hash begins with: the offset basis of FNV-1a (RFC 9923), any odd number would do."""

LOW_BITS = np.uint64(0x7F7F7F7F7F7F7F7F)
CASE_BITS = np.uint64(0x2020202020202020)
BELOW_A, ABOVE_Z = np.uint64(0x1F1F1F1F1F1F1F1F), np.uint64(0x0505050505050505)
BELOW_0, ABOVE_9 = np.uint64(0x5050505050505050), np.uint64(0x4646464646464646)
BLANK_TOP = np.uint64(0x2121212121212121)


@instruction
def byte_at(typingctx, data, at):
    """Return data[at] for `at` >= 0, without numba's wrap-around of negative places, which no loop here needs."""

    def build(context, builder, signature, arguments):
        return builder.load(_place(context, builder, signature, arguments))

    return types.uint8(data, at), build


@instruction
def load_eight(typingctx, data, at):
    """Return the eight bytes from data[at] on, the first lowest; the caller makes sure that they exist."""

    def build(context, builder, signature, arguments):
        wide = builder.bitcast(_place(context, builder, signature, arguments), ir.IntType(64).as_pointer())
        return builder.load(wide, align=1)

    return types.uint64(data, at), build


def _place(context, builder, signature, arguments):
    """Return the address of data[at]."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    return builder.gep(array.data, [arguments[1]], inbounds=True)


@instruction
def prefetch(typingctx, matrix, row):
    """Ask for the memory of a row of a matrix before it is read; nothing happens where there is no such row."""

    def build(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        (stride, _) = cgutils.unpack_tuple(builder, array.strides, 2)
        start = builder.bitcast(array.data, ir.IntType(8).as_pointer())
        place = builder.gep(start, [builder.mul(stride, arguments[1])])
        kind = ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer(), *[ir.IntType(32)] * 3])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(function, [place, *[ir.Constant(ir.IntType(32), value) for value in (0, 3, 1)]])
        return context.get_dummy_value()

    return types.void(matrix, types.int64), build


@instruction
def first_marked(typingctx, marks):
    """Return the number of the first byte of `marks` whose highest bit is set, 8 if there is none."""

    def build(context, builder, signature, arguments):
        zeros = builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))
        return builder.lshr(zeros, ir.Constant(ir.IntType(64), 3))

    return types.int64(types.uint64), build


@instruction
def count_bits(typingctx, marks):
    """Return how many bits of `marks` are set."""

    def build(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), build


@instruction
def copy(typingctx, source, at, count, target, to):
    """Copy source[at : at + count] to target[to:], two arrays of one type that do not overlap."""

    def build(context, builder, signature, arguments):
        arrays = [context.make_array(signature.args[which])(context, builder, arguments[which]) for which in (0, 3)]
        places = [builder.gep(array.data, [arguments[which]]) for array, which in zip(arrays, (1, 4), strict=True)]
        size = context.get_abi_sizeof(context.get_data_type(source.dtype))
        cgutils.raw_memcpy(builder, places[1], places[0], arguments[2], size)
        return context.get_dummy_value()

    return types.void(source, types.int64, types.int64, target, types.int64), build


@inlined
def load_tail(data, at):
    """Return the last bytes of `data` from `at` on, fewer than eight, padded with zeros."""
    word = np.uint64(0)
    for place in range(len(data) - at):
        word |= np.uint64(byte_at(data, at + place)) << np.uint64(8 * place)
    return word


@inlined
def keep_first(word, size):
    """Return `word` with all but its first `size` < 8 bytes zero."""
    return word & ((np.uint64(1) << np.uint64(8 * size)) - np.uint64(1))


@inlined
def mark_blanks(word):
    """Mark each byte of 0x20 and below: space, line breaks, tabs and other controls."""
    return ~((word | HIGH_BITS) - BLANK_TOP) & ~word & HIGH_BITS


@inlined
def mark_letters(word):
    """Mark each byte that is an ASCII letter."""
    folded = (word | CASE_BITS) & LOW_BITS
    return (folded + BELOW_A) & ~(folded + ABOVE_Z) & ~word & HIGH_BITS


@inlined
def mark_digits(word):
    """Mark each byte that is an ASCII digit."""
    low = word & LOW_BITS
    return (low + BELOW_0) & ~(low + ABOVE_9) & ~word & HIGH_BITS


@inlined
def same_bytes(letters, first, last, data, begin, end):
    """Return whether letters[first:last] and data[begin:end] are the same bytes."""
    if last - first != end - begin:
        return False
    for step in range(end - begin):
        if byte_at(letters, first + step) != byte_at(data, begin + step):
            return False
    return True


@inlined
def hash_bytes(data, begin, end):
    """Return a 64-bit hash of data[begin:end], eight bytes at a time; see `hash_end` for its last step."""
    value, at = HASH_START, begin
    while at + 8 <= end:
        value = absorb(value, load_eight(data, at))
        at += 8
    if at < end:
        word = load_eight(data, at) if at + 8 <= len(data) else load_tail(data, at)
        value = absorb(value, keep_first(word, end - at))
    return finish_hash(value, end - begin)


@inlined
def hash_and_points(data, begin, end):
    """Return (`hash_bytes`, code points) of data[begin:end]."""
    value, at, points = HASH_START, begin, end - begin
    while at + 8 <= end:
        word = load_eight(data, at)
        value = absorb(value, word)
        points -= count_bits(word & ~(word << np.uint64(1)) & HIGH_BITS)
        at += 8
    if at < end:
        word = load_eight(data, at) if at + 8 <= len(data) else load_tail(data, at)
        word = keep_first(word, end - at)
        value = absorb(value, word)
        points -= count_bits(word & ~(word << np.uint64(1)) & HIGH_BITS)
    return finish_hash(value, end - begin), points


@inlined
def finish_hash(value, size):
    """Return the hash of `size` bytes, absorbed into `value` eight at a time; never 0, which marks a free slot."""
    value = absorb(value, np.uint64(size))
    return value if value != np.uint64(0) else np.uint64(1)
