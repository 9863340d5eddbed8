import "../../shared/public/tasks.css";

export const metadata = { title: "Tasks" };

export default function Layout({ children }) {
  return (
    <html lang="en">
      <body>{children}</body>
    </html>
  );
}
