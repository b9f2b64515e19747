import type { CriError } from "../ports/cri.ts";

/** An error response: its status and its text, which the client sees. */
export class ApiError extends Error {
  readonly status: number;
  constructor(status: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "ApiError";
    this.status = status;
  }
}

/** A call's failure as the Go kubelet passes it on: clients look for the status in it. */
export function rpcStatus({ code, message }: CriError): string {
  return `rpc error: code = ${code} desc = ${message}`;
}
