/** Content digests. */
export interface Hashing {
  /** SHA-256 of the bytes (a string counts as UTF-8) as 64 lower-case hex digits. */
  sha256(data: string | Uint8Array): string;
}
