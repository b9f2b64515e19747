/** One entry of a tar archive. Paths are relative, without `./` and trailing slash. */
export type TarEntry = { readonly path: string; readonly mode: number } & (
  | { readonly type: "file"; readonly data: Uint8Array }
  | { readonly type: "directory" }
  | { readonly type: "symlink"; readonly target: string }
);

const BLOCK_BYTES = 512;
const typeFlags = { file: "0", symlink: "2", directory: "5" } as const;

/**
 * A ustar archive (POSIX.1-1988) in memory. Owner root, time 0: the same entries always give the same bytes.
 * @throws RangeError when a path or link target passes ustar's 100 bytes (its prefix field is not used)
 */
export function tar(entries: readonly TarEntry[]): Uint8Array {
  const blocks: Uint8Array[] = [];
  for (const entry of entries) {
    blocks.push(header(entry));
    if (entry.type !== "file") continue;
    blocks.push(entry.data);
    const rest = entry.data.length % BLOCK_BYTES;
    if (rest > 0) blocks.push(new Uint8Array(BLOCK_BYTES - rest));
  }
  blocks.push(new Uint8Array(2 * BLOCK_BYTES));
  return Buffer.concat(blocks);
}

function header(entry: TarEntry): Uint8Array {
  const block = Buffer.alloc(BLOCK_BYTES);
  const text = (value: string, offset: number, length: number): void => {
    if (Buffer.byteLength(value) > length) throw new RangeError(`"${value}" is longer than a tar header holds`);
    block.write(value, offset);
  };
  const octal = (value: number, offset: number, length: number): void => {
    text(value.toString(8).padStart(length - 1, "0"), offset, length - 1);
  };
  text(entry.type === "directory" ? `${entry.path}/` : entry.path, 0, 100);
  octal(entry.mode, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(entry.type === "file" ? entry.data.length : 0, 124, 12);
  octal(0, 136, 12);
  text(typeFlags[entry.type], 156, 1);
  if (entry.type === "symlink") text(entry.target, 157, 100);
  text("ustar", 257, 6);
  text("00", 263, 2);
  text("root", 265, 32);
  text("root", 297, 32);
  octal(0, 329, 8);
  octal(0, 337, 8);
  // The checksum counts its own field as eight blanks.
  text(" ".repeat(8), 148, 8);
  const checksum = block.reduce((sum, byte) => sum + byte, 0);
  text(`${checksum.toString(8).padStart(6, "0")}\0 `, 148, 8);
  return block;
}
