/** Bounds of histograms as upstream has them; seconds unless said otherwise. */

/** Prometheus' own. */
export const defaultBounds: readonly number[] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** Calls of the runtime: 5 ms × 2.5ⁿ. */
export const runtimeBounds: readonly number[] = Array.from({ length: 14 }, (_, n) => 0.005 * 2.5 ** n);
export const podStartBounds: readonly number[] = [
  0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600,
];
export const pullBounds: readonly number[] = [
  1, 5, 10, 20, 30, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600,
];
export const statusBounds: readonly number[] = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 20, 30, 45, 60];
export const storageBounds: readonly number[] = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600];
/** Milliseconds. */
export const resizeBounds: readonly number[] = [
  10, 50, 100, 500, 1000, 2000, 5000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000, 600_000,
];
/** Containers. */
export const containerBounds: readonly number[] = [1, 2, 4, 8, 16];
export const clientBounds: readonly number[] = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60];
/** Bytes. */
export const sizeBounds: readonly number[] = [
  64, 256, 512, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216,
];
