// The bell in a React app. React 19 hands properties to custom elements, so a function for the token works as
// `token={…}`; with older ones set it by a ref.
//
//   npm install react react-dom @tabella/inbox
import { useEffect, useRef, useState } from 'react';
import { createRoot } from 'react-dom/client';
import '@tabella/inbox';

const settings = window.tabella ?? { url: 'http://localhost:8025', tenant: 'shop', inbox: 'bell' };

// Your backend asks Tabella for a token for whoever is signed in: POST /inbox/shop/tokens {"user": "ann"}.
async function askForToken() {
  const response = await fetch('/api/inbox-token', { method: 'POST' });
  return (await response.json()).token;
}

function Bell({ onArrived }) {
  const bell = useRef(null);
  useEffect(() => {
    const element = bell.current;
    const arrived = (event) => onArrived(event.detail);
    element.addEventListener('tabella-inbox-arrived', arrived);
    return () => element.removeEventListener('tabella-inbox-arrived', arrived);
  }, [onArrived]);
  return <tabella-inbox ref={bell} {...settings} token={askForToken} />;
}

function App() {
  const [last, setLast] = useState('nothing yet');
  return (
    <nav>
      <strong>Shop</strong> <Bell onArrived={(messages) => setLast(messages.at(-1).message.title)} />
      <p>Last: <output>{last}</output></p>
    </nav>
  );
}

createRoot(document.getElementById('app')).render(<App />);
