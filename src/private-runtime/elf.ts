/** The properties of an ELF program that matter for an image of its own (elf(5)). */
export interface ElfProgram {
  /** Go's name, as OCI images use it: `amd64`, `arm64` …; undefined for other machines. */
  readonly architecture: string | undefined;
  /** False when it needs a dynamic loader, and so files besides itself. */
  readonly static: boolean;
}

/** Bytes from the start of a program that {@link parseElf} needs: program headers come right after the file header. */
export const ELF_HEAD_BYTES = 16_384;

/** e_machine → GOARCH; ppc64 is assumed to be the little-endian variant that distributions build. */
const machines: Readonly<Record<number, string>> = {
  3: "386",
  21: "ppc64le",
  22: "s390x",
  40: "arm",
  62: "amd64",
  183: "arm64",
  243: "riscv64",
};

const ELF_MAGIC = 0x7f454c46;
const PT_INTERP = 3;

/** Reads the head of a file; undefined when it is no ELF program. */
export function parseElf(head: Uint8Array): ElfProgram | undefined {
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
  if (head.byteLength < 64 || view.getUint32(0) !== ELF_MAGIC) return undefined;
  const is64Bit = view.getUint8(4) === 2;
  const littleEndian = view.getUint8(5) === 1;
  const headersOffset = is64Bit ? Number(view.getBigUint64(32, littleEndian)) : view.getUint32(28, littleEndian);
  const headerBytes = view.getUint16(is64Bit ? 54 : 42, littleEndian);
  const headerCount = view.getUint16(is64Bit ? 56 : 44, littleEndian);
  const types: number[] = [];
  for (let index = 0; index < headerCount; index++) {
    const offset = headersOffset + index * headerBytes;
    if (offset + 4 <= head.byteLength) types.push(view.getUint32(offset, littleEndian));
  }
  return { architecture: machines[view.getUint16(18, littleEndian)], static: !types.includes(PT_INTERP) };
}
