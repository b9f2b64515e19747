import { arch } from "node:os";

const architectures: Readonly<Record<string, string>> = { x64: "amd64", ia32: "386" };

/** GOARCH of this machine. */
export const architecture = architectures[arch()] ?? arch();
/** `linux/amd64` */
export const platform = `linux/${architecture}`;
