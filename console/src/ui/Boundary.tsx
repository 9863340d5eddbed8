/** Shows a page's error instead of an empty window. */

import { Component, type ReactNode } from "react";
import { PageLoadError, reloadWhenReachable } from "../shell/lazyPage";
import { ErrorNotice } from "./ErrorNotice";

interface State {
  readonly error: unknown;
}

interface Props {
  /** The error is cleared when this value changes; usually the path. */
  readonly resetOn?: string;
  readonly children: ReactNode;
}

export class Boundary extends Component<Props, State> {
  override state: State = { error: null };

  static getDerivedStateFromError(error: unknown): State {
    return { error };
  }

  override componentDidUpdate(before: Props): void {
    if (before.resetOn !== this.props.resetOn && this.state.error !== null) {
      this.setState({ error: null });
    }
  }

  override componentDidMount(): void {
    addEventListener("online", this.retryLoading);
  }

  override componentWillUnmount(): void {
    removeEventListener("online", this.retryLoading);
  }

  /** What failed for lack of a network is tried again once there is one. */
  private readonly retryLoading = () => {
    if (this.state.error instanceof PageLoadError) reloadWhenReachable();
  };

  private retry(error: unknown): void {
    if (error instanceof PageLoadError) reloadWhenReachable();
    else this.setState({ error: null });
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return (
      <div className="column">
        <ErrorNotice error={error} onRetry={() => this.retry(error)} />
      </div>
    );
  }
}
