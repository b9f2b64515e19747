import { ApiError } from "./api-error.ts";

/**
 * Defers a controller's work until after the change that triggered it, so that the change's event comes first. An API
 * error is not a defect: the object may have been removed.
 */
export function later(work: () => void): void {
  queueMicrotask(() => {
    try {
      work();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
    }
  });
}
