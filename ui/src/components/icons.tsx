// The icons of the page, 16 by 16, in the colour of the text.
import type { ComponentChildren } from 'preact';

function Icon({ children, size = 16 }: { children: ComponentChildren; size?: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      stroke-width="1.4"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      {children}
    </svg>
  );
}

export const Mark = () => (
  <Icon size={20}>
    <circle cx="8" cy="8" r="6.6" />
    <path d="M8 8l3-3.6M8 1.4v1.8M14.6 8h-1.8M8 14.6v-1.8M1.4 8h1.8" />
  </Icon>
);
export const Clock = () => (
  <Icon>
    <circle cx="8" cy="8" r="6" />
    <path d="M8 4.6V8l2.2 1.6" />
  </Icon>
);
export const Reload = () => (
  <Icon>
    <path d="M13.2 6.5A5.5 5.5 0 1 0 13.5 9M13.5 3v3.6H10" />
  </Icon>
);
export const Down = () => (
  <Icon size={12}>
    <path d="M4 6l4 4 4-4" />
  </Icon>
);
export const Sun = () => (
  <Icon>
    <circle cx="8" cy="8" r="2.8" />
    <path d="M8 1.6v1.6M8 12.8v1.6M1.6 8h1.6M12.8 8h1.6M3.5 3.5l1.1 1.1M11.4 11.4l1.1 1.1M12.5 3.5l-1.1 1.1M4.6 11.4l-1.1 1.1" />
  </Icon>
);
export const Moon = () => (
  <Icon>
    <path d="M13.4 9.6A5.8 5.8 0 0 1 6.4 2.6a5.8 5.8 0 1 0 7 7z" />
  </Icon>
);
export const Help = () => (
  <Icon>
    <circle cx="8" cy="8" r="6.2" />
    <path d="M6.2 6.3a1.9 1.9 0 1 1 2.6 1.8c-.5.2-.8.6-.8 1.1M8 11.4v.1" />
  </Icon>
);
export const Plus = () => (
  <Icon>
    <path d="M8 3.2v9.6M3.2 8h9.6" />
  </Icon>
);
export const Minus = () => (
  <Icon>
    <path d="M3.2 8h9.6" />
  </Icon>
);
export const Cross = () => (
  <Icon>
    <path d="M4 4l8 8M12 4l-8 8" />
  </Icon>
);
export const Fit = () => (
  <Icon>
    <path d="M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10" />
  </Icon>
);
