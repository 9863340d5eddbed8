/** A link of the sidebar. */

import type { ReactNode } from "react";
import { Link, useLocation } from "wouter";
import { useTenant } from "../api/tenant";
import { Icon, type IconName } from "../ui/Icon";

interface ItemProps {
  /** Below `/t/{tenant}`. */
  readonly to: string;
  readonly icon: IconName;
  readonly title?: string;
  readonly children: ReactNode;
}

export function NavigationItem({ to, icon, title, children }: ItemProps) {
  const { slug } = useTenant();
  const [location] = useLocation();
  const target = `/t/${slug}${to}`;
  const isHere = location === target || location.startsWith(`${target}/`);
  return (
    <Link href={target} title={title} aria-current={isHere ? "page" : undefined}>
      <Icon name={icon} size={15} />
      <span className="cut">{children}</span>
    </Link>
  );
}
